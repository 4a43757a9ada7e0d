"""The first half of the dispatcher's text: whether a call is one of a variant's.

fits      counts, keywords, guards, then the values step by step, facts about them, memory apart

Arrays that share memory are one range of it, in which each starts where it did; one that was there twice is.
"""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
; Whether places hold what they must.
define internal i1 @holds(ptr %guards, i64 %count) alwaysinline {
entry:
  %found = alloca ptr
  %key = alloca ptr
  %position = alloca i64
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %same ], [ %behind, %skip ]
  %guard = phi ptr [ %guards, %entry ], [ %following, %same ], [ %after, %skip ]
  %opened = phi ptr [ null, %entry ], [ %open, %same ], [ %opened, %skip ]
  %version = phi i64 [ 0, %entry ], [ %now_, %same ], [ %version, %skip ]
  %end = icmp eq i64 %i, %count
  if %end goto yes
  %kind = field i64 %guard <GUARD_KIND>
  %holder = field ptr %guard <GUARD_HOLDER>
  %name = field ptr %guard <GUARD_NAME>
  %value = field ptr %guard <GUARD_VALUE>
  switch i64 %kind, label %dict [ i64 <GUARD_IS_CELL>, label %cell
                                  i64 <GUARD_IS_CONTEXT>, label %context
                                  i64 <GUARD_IS_FIELD>, label %part
                                  i64 <GUARD_IS_ITEM>, label %element
                                  i64 <GUARD_IS_ENTRIES>, label %entries
                                  i64 <GUARD_IS_ENTRY>, label %entry_
                                  i64 <GUARD_IS_VERSION>, label %changed
                                  i64 <GUARD_IS_SEEN>, label %seen ]
cell:
  %content = field ptr %holder <CONTENT>
  br label %compare
context:
  %status = call i32 @PyContextVar_Get(ptr %holder, ptr null, ptr %found)
  %held = load ptr, ptr %found
  call void @Py_DecRef(ptr %held)
  br label %compare
part:
  %offset = field i64 %guard <GUARD_NAME>
  %inside = getelementptr i8, ptr %holder, i64 %offset
  %kept = load ptr, ptr %inside
  br label %compare
element:
  %number = field i64 %guard <GUARD_NAME>
  %items = field ptr %holder <LIST_ITEMS>
  %inlist = item ptr %items %number
  br label %compare
entries:
  store i64 0, ptr %position
  %size = field ptr %holder <SIZE>
  br label %compare
entry_:
  %any = call i32 @PyDict_Next(ptr %holder, ptr %position, ptr %key, ptr %found)
  %is = icmp ne i32 %any, 0
  br i1 %is, label %keyed, label %no
keyed:
  %nowkey = load ptr, ptr %key
  %entryvalue = load ptr, ptr %found
  %samekey = icmp eq ptr %nowkey, %name
  br i1 %samekey, label %compare, label %no
changed:
  %current = field i64 %holder <DICT_VERSION>
  %last = field i64 %guard <GUARD_VALUE>
  %unchanged = icmp eq i64 %current, %last
  br i1 %unchanged, label %skip, label %same
skip:
  %rows = field i64 %guard <GUARD_NAME>
  %behind = add i64 %i, %rows
  %bytes = mul i64 %rows, <GUARD_BYTES>
  %after = getelementptr i8, ptr %guard, i64 %bytes
  br label %each
seen:
  put i64 %version in field %opened <GUARD_VALUE>
  br label %same
dict:
  %item = call ptr @PyDict_GetItemWithError(ptr %holder, ptr %name)
  %absent = icmp eq ptr %item, null
  br i1 %absent, label %clear, label %compare
clear:
  call void @PyErr_Clear()
  br label %compare
compare:
  %now = phi ptr [ %content, %cell ], [ %held, %context ], [ null, %clear ], [ %item, %dict ],
                [ %kept, %part ], [ %inlist, %element ], [ %size, %entries ], [ %entryvalue, %keyed ]
  %equal = icmp eq ptr %now, %value
  br i1 %equal, label %same, label %no
same:
  %open = phi ptr [ %opened, %compare ], [ %opened, %seen ], [ %guard, %changed ]
  %now_ = phi i64 [ %version, %compare ], [ %version, %seen ], [ %current, %changed ]
  %next = add i64 %i, 1
  %following = getelementptr i8, ptr %guard, i64 <GUARD_BYTES>
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a call is one of a variant's; then `values` has the values by step, `pointers` what its kernel
; takes.
define internal i1 @fits(ptr %variant, ptr %args, i64 %count, ptr %names,
                         ptr %values, ptr %slots, ptr %pointers, ptr %lows, ptr %highs) alwaysinline {
  %positional = field i64 %variant <VARIANT_POSITIONAL>
  %keywords = field ptr %variant <VARIANT_KEYWORDS>
  %counts = icmp eq i64 %count, %positional
  unless %counts goto no
  %named = call i1 @same_names(ptr %names, ptr %keywords)
  unless %named goto no
  %guards = field ptr %variant <VARIANT_GUARDS>
  %guardcount = field i64 %variant <VARIANT_GUARD_COUNT>
  %outside = call i1 @holds(ptr %guards, i64 %guardcount)
  unless %outside goto no
  %matches = call i1 @matches(ptr %variant, ptr %args,
                              ptr %values, ptr %slots, ptr %pointers, ptr %lows, ptr %highs)
  unless %matches goto no
  %facts = call i1 @facts(ptr %variant, ptr %slots)
  unless %facts goto no
  %ranges = field i64 %variant <VARIANT_RANGES>
  %apart = call i1 @apart(ptr %lows, ptr %highs, i64 %ranges)
  unless %apart goto no
  %needs = field i64 %variant <VARIANT_NEEDS_WORKSPACE>
  %workspace = field i64 %variant <VARIANT_WORKSPACE>
  %free = icmp ne i64 %workspace, 0
  %needless = icmp eq i64 %needs, 0
  %has = or i1 %free, %needless
  ret i1 %has
no:
  ret i1 false
}

; Whether the names of keywords are the same, in the same order.
define internal i1 @same_names(ptr %names, ptr %wanted) alwaysinline {
  %same = icmp eq ptr %names, %wanted
  if %same goto yes
  %none = icmp eq ptr %names, null
  %nonewanted = icmp eq ptr %wanted, null
  %either = or i1 %none, %nonewanted
  br i1 %either, label %no, label %sizes
sizes:
  %count = field i64 %names <SIZE>
  %wantedcount = field i64 %wanted <SIZE>
  %counts = icmp eq i64 %count, %wantedcount
  %items = getelementptr i8, ptr %names, i64 <TUPLE_ITEMS>
  %wanteditems = getelementptr i8, ptr %wanted, i64 <TUPLE_ITEMS>
  unless %counts goto no
  %equal = call i1 @same_words(ptr %items, ptr %wanteditems, i64 %count)
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}

; Find the values of a call, step by step, and check each.
define internal i1 @matches(ptr %variant, ptr %args,
                            ptr %values, ptr %slots, ptr %pointers, ptr %lows, ptr %highs) alwaysinline {
entry:
  %overflow = alloca i32
  %key = alloca ptr
  %item = alloca ptr
  %steps = field ptr %variant <VARIANT_STEPS>
  %count = field i64 %variant <VARIANT_STEP_COUNT>
  each %i below %count over %step in %steps by <STEP_BYTES> else yes
  br label %fetch
fetch:
  %how = field i64 %step <STEP_FETCH>
  %index = field i64 %step <STEP_INDEX>
  %source = field i64 %step <STEP_SOURCE>
  %wantedkey = field ptr %step <STEP_KEY>
  %container = item ptr %values %source
  switch i64 %how, label %argument [ i64 <FETCH_IS_TUPLE>, label %tuple
                                     i64 <FETCH_IS_LIST>, label %list
                                     i64 <FETCH_IS_DICT>, label %dict
                                     i64 <FETCH_IS_ATTRIBUTE>, label %attribute
                                     i64 <FETCH_IS_OBJECT>, label %check ]
argument:
  %given = item ptr %args %index
  br label %check
tuple:
  %tupleitems = getelementptr i8, ptr %container, i64 <TUPLE_ITEMS>
  %intuple = item ptr %tupleitems %index
  br label %check
list:
  %listitems = field ptr %container <LIST_ITEMS>
  %inlist = item ptr %listitems %index
  br label %check
attribute:
  %inobject = call ptr @PyObject_GenericGetAttr(ptr %container, ptr %wantedkey)
  %lacks = icmp eq ptr %inobject, null
  unless %lacks goto kept
  call void @PyErr_Clear()
  ret i1 false
kept:
  call void @Py_DecRef(ptr %inobject)
  br label %check
dict:
  %position = getelementptr i64, ptr %slots, i64 %source
  %any = call i32 @PyDict_Next(ptr %container, ptr %position, ptr %key, ptr %item)
  %is = icmp ne i32 %any, 0
  br i1 %is, label %named, label %no
named:
  %nowkey = load ptr, ptr %key
  %indict = load ptr, ptr %item
  %samekey = icmp eq ptr %nowkey, %wantedkey
  if %samekey goto check
  %keytype = field ptr %nowkey <TYPE>
  %wantedtype = field ptr %wantedkey <TYPE>
  %string = icmp eq ptr %keytype, @rt.str
  %strings = icmp eq ptr %wantedtype, @rt.str
  %both = and i1 %string, %strings
  br i1 %both, label %compared, label %no
compared:
  %order = call i32 @PyUnicode_Compare(ptr %nowkey, ptr %wantedkey)
  %equal = icmp eq i32 %order, 0
  br i1 %equal, label %check, label %no
check:
  %value = phi ptr [ %given, %argument ], [ %intuple, %tuple ], [ %inlist, %list ],
                  [ %indict, %named ], [ %indict, %compared ], [ %wantedkey, %fetch ],
                  [ %inobject, %kept ]
  put ptr %value in item %values %i
  %slot = getelementptr i64, ptr %slots, i64 %i
  %type = field ptr %value <TYPE>
  %wanted = field ptr %step <STEP_WANTED>
  %kind = field i64 %step <STEP_CHECK>
  switch i64 %kind, label %array [ i64 <CHECK_IS_VALUE>, label %number
                                   i64 <CHECK_IS_INT>, label %int
                                   i64 <CHECK_IS_BOOL>, label %bool
                                   i64 <CHECK_IS_SAME>, label %same
                                   i64 <CHECK_IS_CONTAINER>, label %sized
                                   i64 <CHECK_IS_DICT>, label %sized
                                   i64 <CHECK_IS_INSTANCE>, label %instance ]
number:
  %isnumber = icmp eq ptr %type, %wanted
  %numberplace = getelementptr i8, ptr %value, i64 <VALUE>
  br i1 %isnumber, label %pinned, label %no
int:
  %isint = icmp eq ptr %type, @rt.int
  br i1 %isint, label %digits, label %no
digits:
  %integer = call i64 @PyLong_AsLongLongAndOverflow(ptr %value, ptr %overflow)
  store i64 %integer, ptr %slot
  %over = load i32, ptr %overflow
  %within = icmp eq i32 %over, 0
  br i1 %within, label %pinned, label %no
bool:
  %istrue = icmp eq ptr %value, @rt.true
  %isfalse = icmp eq ptr %value, @rt.false
  %isbool = or i1 %istrue, %isfalse
  %bit = zext i1 %istrue to i64
  store i64 %bit, ptr %slot
  br i1 %isbool, label %pinned, label %no
same:
  %issame = icmp eq ptr %value, %wanted
  br i1 %issame, label %advance, label %no
instance:
  %isinstance = icmp eq ptr %type, %wanted
  br i1 %isinstance, label %advance, label %no
sized:
  store i64 0, ptr %slot
  %iskind = icmp eq ptr %type, %wanted
  unless %iskind goto no
  %length = field i64 %value <SIZE>
  %wantedlength = field i64 %step <STEP_SIZE>
  %lengths = icmp eq i64 %length, %wantedlength
  br i1 %lengths, label %advance, label %no
array:
  %isarray = call i1 @is_array(ptr %step, ptr %value, ptr %type)
  unless %isarray goto no
  %data = field ptr %value <DATA>
  %start = ptrtoint ptr %data to i64
  %number_ = field i64 %step <STEP_RANGE>
  %low = field i64 %step <STEP_LOW>
  %isopen = field i64 %step <STEP_IS_OPEN>
  %isclosed = icmp eq i64 %isopen, 0
  br i1 %isclosed, label %fixed, label %open
fixed:
  %high = field i64 %step <STEP_HIGH>
  br label %ranged
open:
  %openhigh = call i64 @open_end(ptr %step, ptr %value, ptr %pointers)
  %fitting = icmp ne i64 %openhigh, 0
  br i1 %fitting, label %ranged, label %no
ranged:
  %bytes = phi i64 [ %high, %fixed ], [ %openhigh, %open ]
  %first = add i64 %start, %low
  %past = add i64 %start, %bytes
  %lowplace = getelementptr i64, ptr %lows, i64 %number_
  %highplace = getelementptr i64, ptr %highs, i64 %number_
  %back = field i64 %step <STEP_BEFORE>
  %forward = sub i64 0, %back
  %memory = getelementptr i8, ptr %data, i64 %forward
  %isshared = field i64 %step <STEP_SHARED>
  %isown = icmp eq i64 %isshared, 0
  br i1 %isown, label %own, label %shared
own:
  store i64 %first, ptr %lowplace
  store i64 %past, ptr %highplace
  br label %pass
shared:
  %common = load i64, ptr %lowplace
  %isthere = icmp eq i64 %first, %common
  %twin = field i64 %step <STEP_TWIN>
  %wantedarray = item ptr %values %twin
  %isit = icmp eq ptr %value, %wantedarray
  %agrees = and i1 %isthere, %isit
  br i1 %agrees, label %pass, label %no
pinned:
  %found = phi ptr [ %numberplace, %number ], [ %slot, %digits ], [ %slot, %bool ]
  %pin = field ptr %step <STEP_PINNED>
  %pinbytes = field i64 %step <STEP_PINNED_BYTES>
  %isequal = call i1 @equal(ptr %found, ptr %pin, i64 %pinbytes)
  br i1 %isequal, label %pass, label %no
pass:
  %passed = phi ptr [ %memory, %own ], [ %memory, %shared ], [ %found, %pinned ]
  %param = field i64 %step <STEP_PARAM>
  %isused = icmp sge i64 %param, 0
  unless %isused goto advance
  put ptr %passed in item %pointers %param
  br label %advance
advance:
  again
yes:
  ret i1 true
no:
  ret i1 false
}

; Where the range of an array of any length ends, of which code is told; 0 where it is not as long as it has
; to be.
define internal i64 @open_end(ptr %step, ptr %value, ptr %pointers) alwaysinline {
  %extents = field ptr %value <EXTENTS>
  %length = load i64, ptr %extents
  %least = field i64 %step <STEP_LEAST>
  %most = field i64 %step <STEP_MOST>
  %param = field i64 %step <STEP_LENGTH>
  %place = getelementptr ptr, ptr %pointers, i64 %param
  %enough = icmp sge i64 %length, %least
  %few = icmp sle i64 %length, %most
  %within = and i1 %enough, %few
  unless %within goto no
  %again = field i64 %step <STEP_AS_BEFORE>
  %isfirst = icmp eq i64 %again, 0
  unless %isfirst goto compare
  store ptr %extents, ptr %place
  br label %yes
compare:
  %told = load ptr, ptr %place
  %before = load i64, ptr %told
  %same = icmp eq i64 %before, %length
  br i1 %same, label %yes, label %no
yes:
  %row = field i64 %step <STEP_ROW>
  %rows = mul i64 %length, %row
  %high = field i64 %step <STEP_HIGH>
  %end = add i64 %high, %rows
  ret i64 %end
no:
  ret i64 0
}

; Whether a value is an array of the wanted dtype, shape and layout; how long one of any length is, is not
; asked here.
define internal i1 @is_array(ptr %step, ptr %value, ptr %type) alwaysinline {
  %isarray = icmp eq ptr %type, @rt.ndarray
  unless %isarray goto no
  %descr = field ptr %value <DESCR>
  %wanted = field ptr %step <STEP_WANTED>
  %usual = icmp eq ptr %descr, %wanted
  if %usual goto layout
  %number = field i32 %descr <NUMBER>
  %wide = sext i32 %number to i64
  %one = field i64 %step <STEP_NUMBER>
  %other = field i64 %step <STEP_OTHER_NUMBER>
  %isone = icmp eq i64 %wide, %one
  %isother = icmp eq i64 %wide, %other
  %either = or i1 %isone, %isother
  %order = field i8 %descr <BYTEORDER>
  %native = icmp ne i8 %order, 62
  %same = and i1 %either, %native
  br i1 %same, label %layout, label %no
layout:
  %rank32 = field i32 %value <RANK>
  %rank = sext i32 %rank32 to i64
  %wantedrank = field i64 %step <STEP_SIZE>
  %ranks = icmp eq i64 %rank, %wantedrank
  %flags32 = field i32 %value <FLAGS>
  %flags = zext i32 %flags32 to i64
  %masked = and i64 %flags, <LAYOUT_FLAGS>
  %wantedflags = field i64 %step <STEP_FLAGS>
  %flagged = icmp eq i64 %masked, %wantedflags
  %both = and i1 %ranks, %flagged
  unless %both goto no
  %extents = field ptr %value <EXTENTS>
  %wantedextents = field ptr %step <STEP_EXTENTS>
  %open = field i64 %step <STEP_IS_OPEN>
  %rest = getelementptr i64, ptr %extents, i64 %open
  %wantedrest = getelementptr i64, ptr %wantedextents, i64 %open
  %count = sub i64 %rank, %open
  %shapes = call i1 @same_words(ptr %rest, ptr %wantedrest, i64 %count)
  unless %shapes goto no
  %strides = field ptr %value <STRIDES>
  %wantedstrides = field ptr %step <STEP_STRIDES>
  %any = icmp eq ptr %wantedstrides, null
  if %any goto yes
  %strided = call i1 @same_words(ptr %strides, ptr %wantedstrides, i64 %rank)
  ret i1 %strided
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @same_words(ptr %one, ptr %other, i64 %count) alwaysinline {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %body
body:
  %left = item i64 %one %i
  %right = item i64 %other %i
  %next = add i64 %i, 1
  %same = icmp eq i64 %left, %right
  br i1 %same, label %each, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @equal(ptr %one, ptr %other, i64 %count) alwaysinline {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %body
body:
  %left = item i8 %one %i
  %right = item i8 %other %i
  %next = add i64 %i, 1
  %same = icmp eq i8 %left, %right
  br i1 %same, label %each, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether facts about the call's integers are what they were. Sums of their 64-bit products are exact.
define internal i1 @facts(ptr %variant, ptr %slots) alwaysinline {
entry:
  %facts = field ptr %variant <VARIANT_FACTS>
  %count = field i64 %variant <VARIANT_FACT_COUNT>
  each %i below %count over %fact in %facts by <FACT_BYTES> else yes
  br label %sum
sum:
  %terms = field ptr %fact <FACT_TERMS>
  %termcount = field i64 %fact <FACT_TERM_COUNT>
  %start = field i64 %fact <FACT_START>
  %widestart = sext i64 %start to i128
  br label %term
term:
  %k = phi i64 [ 0, %sum ], [ %nextk, %add ]
  %total = phi i128 [ %widestart, %sum ], [ %more, %add ]
  %at = phi ptr [ %terms, %sum ], [ %nextterm, %add ]
  %complete = icmp eq i64 %k, %termcount
  br i1 %complete, label %judge, label %add
add:
  %factor = field i64 %at <TERM_FACTOR>
  %number = field i64 %at <TERM_PLACE>
  %value = item i64 %slots %number
  %widefactor = sext i64 %factor to i128
  %widevalue = sext i64 %value to i128
  %product = mul i128 %widefactor, %widevalue
  %more = add i128 %total, %product
  %nextk = add i64 %k, 1
  %nextterm = getelementptr i8, ptr %at, i64 <TERM_BYTES>
  br label %term
judge:
  %kind = field i64 %fact <FACT_KIND>
  %expected = field i64 %fact <FACT_EXPECTED>
  %positive = icmp sgt i128 %total, 0
  %isrest = icmp eq i64 %kind, <FACT_IS_REMAINDER>
  br i1 %isrest, label %rest, label %sign
sign:
  %one = zext i1 %positive to i64
  br label %compare
rest:
  %small = icmp slt i128 %total, 9223372036854775807
  br i1 %small, label %divide, label %no
divide:
  %period = field i64 %fact <FACT_PERIOD>
  %narrow = trunc i128 %total to i64
  %least = select i1 %positive, i64 %narrow, i64 0
  %left = urem i64 %least, %period
  br label %compare
compare:
  %now = phi i64 [ %one, %sign ], [ %left, %divide ]
  %same = icmp eq i64 %now, %expected
  unless %same goto no
  again
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether no two ranges of memory overlap.
define internal i1 @apart(ptr %lows, ptr %highs, i64 %count) alwaysinline {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %checked ]
  %bad = phi i1 [ false, %entry ], [ %worse, %checked ]
  %end = icmp uge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %low = item i64 %lows %i
  %high = item i64 %highs %i
  br label %other
other:
  %k = phi i64 [ 0, %one ], [ %nextk, %pair ]
  %worse = phi i1 [ %bad, %one ], [ %worst, %pair ]
  %all = icmp eq i64 %k, %i
  br i1 %all, label %checked, label %pair
pair:
  %otherlow = item i64 %lows %k
  %otherhigh = item i64 %highs %k
  %starts = icmp ult i64 %low, %otherhigh
  %ends = icmp ult i64 %otherlow, %high
  %meet = and i1 %starts, %ends
  %worst = or i1 %worse, %meet
  %nextk = add i64 %k, 1
  br label %other
checked:
  %next = add i64 %i, 1
  br label %each
done:
  %good = xor i1 %bad, true
  ret i1 %good
}
"""
