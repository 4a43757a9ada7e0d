"""The second half of the dispatcher's text: running a variant, once a call is known to be its.

run       own what could go, make the results' memory, call the kernel
build     make what is returned: steps on a stack, of which every value is owned; what a step made a later one
          may return again
"""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
define internal ptr @run(ptr %variant, ptr %values, ptr %slots, ptr %pointers) {
entry:
  %count = field i64 %variant <VARIANT_FRESH_COUNT>
  %objects = alloca ptr, i64 %count
  %numbers = alloca [2 x i64], i64 %count
  %owns = field i64 %variant <VARIANT_OWNS>
  %borrows = icmp eq i64 %owns, 0
  if %borrows goto make
  call void @own(ptr %variant, ptr %values, i1 true)
  br label %make
make:
  %shared = getelementptr i8, ptr %variant, i64 <VARIANT_WORKSPACE>
  %workspace = load ptr, ptr %shared
  store ptr null, ptr %shared
  %made = call i1 @make(ptr %variant, ptr %objects, ptr %numbers, ptr %pointers)
  br i1 %made, label %launch, label %unmade
unmade:
  store ptr %workspace, ptr %shared
  br label %end
launch:
  %status = call i32 @launch(ptr %variant, ptr %pointers, ptr %workspace)
  store ptr %workspace, ptr %shared
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %finish, label %failed
failed:
  call void @drop(ptr %objects, i64 %count)
  %raised = call ptr @raise(ptr %variant, i32 %status)
  br label %end
finish:
  %steps = field i64 %variant <VARIANT_BUILD_COUNT>
  %simple = icmp eq i64 %steps, 0
  br i1 %simple, label %single, label %build
single:
  %object = load ptr, ptr %objects
  br label %end
build:
  %built = call ptr @build(ptr %variant, ptr %objects, ptr %numbers, ptr %values, ptr %pointers)
  call void @drop(ptr %objects, i64 %count)
  br label %end
end:
  %result = phi ptr [ null, %unmade ], [ %raised, %failed ], [ %object, %single ], [ %built, %build ]
  if %borrows goto done
  call void @own(ptr %variant, ptr %values, i1 false)
  br label %done
done:
  ret ptr %result
}

; Own the values that only a list or a dict keeps alive, or own them no more.
define internal void @own(ptr %variant, ptr %values, i1 %begin) {
entry:
  %steps = field ptr %variant <VARIANT_STEPS>
  %count = field i64 %variant <VARIANT_STEP_COUNT>
  each %i below %count over %step in %steps by <STEP_BYTES> else done
  %owned = field i64 %step <STEP_OWNED>
  %value = item ptr %values %i
  %not = icmp eq i64 %owned, 0
  if %not goto advance
  unless %begin goto less
  call void @Py_IncRef(ptr %value)
  br label %advance
less:
  call void @Py_DecRef(ptr %value)
  br label %advance
advance:
  again
done:
  ret void
}

define internal void @drop(ptr %objects, i64 %count) {
entry:
  each %i below %count else done
  %object = item ptr %objects %i
  call void @Py_DecRef(ptr %object)
  again
done:
  ret void
}

; Memory for results. A number has a slot and no object. What is large is asked of Python: other code may run
; meanwhile, which finds that the workspace is taken.
define internal i1 @make(ptr %variant, ptr %objects, ptr %numbers, ptr %pointers) {
entry:
  %shape = alloca [<MOST_RANK> x i64]
  %rows = field ptr %variant <VARIANT_FRESH>
  %count = field i64 %variant <VARIANT_FRESH_COUNT>
  each %i below %count over %fresh in %rows by <FRESH_BYTES> else yes
  %place = getelementptr ptr, ptr %objects, i64 %i
  %descr = field ptr %fresh <FRESH_DESCR>
  %isnumber = icmp eq ptr %descr, null
  br i1 %isnumber, label %number, label %array
number:
  store ptr null, ptr %place
  %slot = getelementptr [2 x i64], ptr %numbers, i64 %i
  br label %made
array:
  %fixed = field ptr %fresh <FRESH_EXTENTS>
  %opencount = field i64 %fresh <FRESH_OPEN_COUNT>
  %isclosed = icmp eq i64 %opencount, 0
  br i1 %isclosed, label %sized, label %open
open:
  call void @shaped(ptr %fresh, ptr %pointers, ptr %shape)
  br label %sized
sized:
  %extents = phi ptr [ %fixed, %array ], [ %shape, %open ]
  %maker = field ptr %fresh <FRESH_MAKER>
  %small = icmp eq ptr %maker, null
  br i1 %small, label %own, label %ask
ask:
  %asked = call ptr @asked(ptr %fresh, ptr %extents)
  br label %either
own:
  %rank = field i32 %fresh <FRESH_RANK>
  %strides = field ptr %fresh <FRESH_STRIDES>
  call void @Py_IncRef(ptr %descr)
  %new = call ptr @PyArray_NewFromDescr(
      ptr @rt.ndarray, ptr %descr, i32 %rank, ptr %extents, ptr %strides, ptr null, i32 0, ptr null)
  br label %either
either:
  %object = phi ptr [ %asked, %ask ], [ %new, %own ]
  store ptr %object, ptr %place
  %none = icmp eq ptr %object, null
  br i1 %none, label %no, label %filled
filled:
  %data = field ptr %object <DATA>
  br label %made
made:
  %memory = phi ptr [ %slot, %number ], [ %data, %filled ]
  %param = field i64 %fresh <FRESH_PARAM>
  put ptr %memory in item %pointers %param
  again
no:
  call void @drop(ptr %objects, i64 %i)
  ret i1 false
yes:
  ret i1 true
}

; The shape of a new array, with the extents that lengths tell.
define internal void @shaped(ptr %fresh, ptr %pointers, ptr %shape) {
entry:
  %fixed = field ptr %fresh <FRESH_EXTENTS>
  %rank = field i32 %fresh <FRESH_RANK>
  %wide = sext i32 %rank to i64
  call void @copied(ptr %shape, ptr %fixed, i64 %wide)
  %rows = field ptr %fresh <FRESH_OPEN>
  %count = field i64 %fresh <FRESH_OPEN_COUNT>
  each %i below %count over %open in %rows by <OPEN_BYTES> else done
  %extent = call i64 @reckoned(ptr %open, ptr %pointers)
  %axis = field i64 %open <OPEN_AXIS>
  put i64 %extent in item %shape %axis
  again
done:
  ret void
}

; What a maker makes, which is told the extents that lengths tell.
define internal ptr @asked(ptr %fresh, ptr %shape) {
entry:
  %told = alloca [<MOST_RANK> x ptr]
  %maker = field ptr %fresh <FRESH_MAKER>
  %rows = field ptr %fresh <FRESH_OPEN>
  %count = field i64 %fresh <FRESH_OPEN_COUNT>
  each %i below %count over %open in %rows by <OPEN_BYTES> else ask
  %axis = field i64 %open <OPEN_AXIS>
  %extent = item i64 %shape %axis
  %number = call ptr @PyLong_FromLongLong(i64 %extent)
  %none = icmp eq ptr %number, null
  if %none goto no
  put ptr %number in item %told %i
  again
ask:
  %new = call ptr @PyObject_Vectorcall(ptr %maker, ptr %told, i64 %count, ptr null)
  call void @drop(ptr %told, i64 %count)
  ret ptr %new
no:
  call void @drop(ptr %told, i64 %i)
  ret ptr null
}

; An extent that lengths tell.
define internal i64 @reckoned(ptr %open, ptr %pointers) {
entry:
  %terms = field ptr %open <OPEN_TERMS>
  %count = field i64 %open <OPEN_TERM_COUNT>
  %offset = field i64 %open <OPEN_OFFSET>
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %add ]
  %total = phi i64 [ %offset, %entry ], [ %more, %add ]
  %term = phi ptr [ %terms, %entry ], [ %following, %add ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %add
add:
  %param = field i64 %term <TERM_PLACE>
  %factor = field i64 %term <TERM_FACTOR>
  %place = item ptr %pointers %param
  %length = load i64, ptr %place
  %multiple = mul i64 %length, %factor
  %more = add i64 %total, %multiple
  %next = add i64 %i, 1
  %following = getelementptr i8, ptr %term, i64 <TERM_BYTES>
  br label %each
done:
  ret i64 %total
}

; Call the kernel, by wish without the interpreter's lock.
define internal i32 @launch(ptr %variant, ptr %pointers, ptr %workspace) {
entry:
  %params = field i64 %variant <VARIANT_PARAMS>
  %pool = field ptr %variant <VARIANT_POOL>
  %after = getelementptr ptr, ptr %pointers, i64 %params
  %last = getelementptr ptr, ptr %after, i64 1
  store ptr %workspace, ptr %after
  store ptr %pool, ptr %last
  %kernel = field ptr %variant <VARIANT_KERNEL>
  %releases = field i64 %variant <VARIANT_RELEASES>
  %holds = icmp eq i64 %releases, 0
  br i1 %holds, label %held, label %released
held:
  %status = call i32 %kernel(ptr %pointers)
  br label %done
released:
  %thread = call ptr @PyEval_SaveThread()
  %result = call i32 %kernel(ptr %pointers)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
done:
  %code = phi i32 [ %status, %held ], [ %result, %released ]
  ret i32 %code
}

; Ask Python for the exception of a status.
define internal ptr @raise(ptr %variant, i32 %status) {
  %failed = field ptr %variant <VARIANT_FAILED>
  %wide = sext i32 %status to i64
  %number = call ptr @PyLong_FromLongLong(i64 %wide)
  %none = icmp eq ptr %number, null
  if %none goto done
  %arguments = alloca ptr
  store ptr %number, ptr %arguments
  %result = call ptr @PyObject_Vectorcall(ptr %failed, ptr %arguments, i64 1, ptr null)
  call void @Py_DecRef(ptr %number)
  ret ptr %result
done:
  ret ptr null
}

define internal ptr @build(ptr %variant, ptr %objects, ptr %numbers, ptr %values, ptr %pointers) {
entry:
  %steps = field ptr %variant <VARIANT_BUILD>
  %count = field i64 %variant <VARIANT_BUILD_COUNT>
  %stack = alloca ptr, i64 %count
  %all = alloca ptr, i64 %count
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %push ]
  %step = phi ptr [ %steps, %entry ], [ %following, %push ]
  %height = phi i64 [ 0, %entry ], [ %above, %push ]
  %end = icmp eq i64 %i, %count
  unless %end goto one
  %result = load ptr, ptr %stack
  ret ptr %result
one:
  %kind = field i64 %step <BUILD_KIND>
  %argument = field i64 %step <BUILD_ARGUMENT>
  %named = inttoptr i64 %argument to ptr
  %slot = getelementptr [2 x i64], ptr %numbers, i64 %argument
  %under = sub i64 %height, %argument
  %parts = getelementptr ptr, ptr %stack, i64 %under
  switch i64 %kind, label %number [ i64 <BUILD_IS_ARRAY>, label %array
                                    i64 <BUILD_IS_ARGUMENT>, label %value
                                    i64 <BUILD_IS_OBJECT>, label %known
                                    i64 <BUILD_IS_TUPLE>, label %tuple
                                    i64 <BUILD_IS_LIST>, label %list
                                    i64 <BUILD_IS_DICT>, label %dict
                                    i64 <BUILD_IS_CALL>, label %call
                                    i64 <BUILD_IS_VIEW>, label %view
                                    i64 <BUILD_IS_PART>, label %part
                                    i64 <BUILD_IS_SIZED>, label %sized
                                    i64 <BUILD_IS_AGAIN>, label %again ]
sized:
  %prefix = item ptr %objects %argument
  %issized = call ptr @sized(ptr %step, ptr %prefix, ptr %pointers)
  br label %new
view:
  %whole = item ptr %objects %argument
  %isview = call ptr @view(ptr %step, ptr %whole)
  br label %new
part:
  %given = item ptr %values %argument
  %ispart = call ptr @view(ptr %step, ptr %given)
  br label %new
array:
  %isarray = item ptr %objects %argument
  br label %known
value:
  %isvalue = item ptr %values %argument
  br label %known
again:
  %isearlier = item ptr %all %argument
  br label %known
known:
  %object = phi ptr [ %isarray, %array ], [ %isvalue, %value ], [ %isearlier, %again ], [ %named, %one ]
  call void @Py_IncRef(ptr %object)
  br label %push
number:
  %holder = item ptr %objects %argument
  %alone = icmp eq ptr %holder, null
  br i1 %alone, label %counted, label %cell
cell:
  %offset = field i64 %step <BUILD_VIEW>
  %cells = field ptr %holder <DATA>
  %within = getelementptr i8, ptr %cells, i64 %offset
  br label %counted
counted:
  %memory = phi ptr [ %slot, %number ], [ %within, %cell ]
  %isnumber = call ptr @number(ptr %step, ptr %memory)
  br label %new
tuple:
  %newtuple = call ptr @PyTuple_New(i64 %argument)
  %notuple = icmp eq ptr %newtuple, null
  %tupleitems = getelementptr i8, ptr %newtuple, i64 <TUPLE_ITEMS>
  br i1 %notuple, label %fail, label %fill
list:
  %newlist = call ptr @PyList_New(i64 %argument)
  %nolist = icmp eq ptr %newlist, null
  br i1 %nolist, label %fail, label %listed
listed:
  %listitems = field ptr %newlist <LIST_ITEMS>
  br label %fill
fill:
  %items = phi ptr [ %tupleitems, %tuple ], [ %listitems, %listed ]
  %filled = phi ptr [ %newtuple, %tuple ], [ %newlist, %listed ]
  call void @copied(ptr %items, ptr %parts, i64 %argument)
  br label %made
dict:
  %size = field i64 %named <SIZE>
  %base = sub i64 %height, %size
  %dictparts = getelementptr ptr, ptr %stack, i64 %base
  %newdict = call ptr @dict(ptr %named, ptr %dictparts)
  %nodict = icmp eq ptr %newdict, null
  br i1 %nodict, label %fail, label %made
call:
  %class = field ptr %step <BUILD_DESCR>
  %instance = call ptr @PyObject_Vectorcall(ptr %class, ptr %parts, i64 %argument, ptr null)
  %noinstance = icmp eq ptr %instance, null
  br i1 %noinstance, label %fail, label %called
called:
  call void @drop(ptr %parts, i64 %argument)
  br label %made
made:
  %container = phi ptr [ %filled, %fill ], [ %newdict, %dict ], [ %instance, %called ]
  %rest = phi i64 [ %under, %fill ], [ %base, %dict ], [ %under, %called ]
  br label %push
new:
  %fresh = phi ptr [ %isnumber, %counted ], [ %isview, %view ], [ %ispart, %part ], [ %issized, %sized ]
  %nothing = icmp eq ptr %fresh, null
  br i1 %nothing, label %fail, label %push
push:
  %top = phi ptr [ %object, %known ], [ %fresh, %new ], [ %container, %made ]
  %at = phi i64 [ %height, %known ], [ %height, %new ], [ %rest, %made ]
  put ptr %top in item %stack %at
  put ptr %top in item %all %i
  %above = add i64 %at, 1
  %next = add i64 %i, 1
  %following = getelementptr i8, ptr %step, i64 <BUILD_BYTES>
  br label %each
fail:
  call void @drop(ptr %stack, i64 %height)
  ret ptr null
}

; A dict of keys and as many values, which then are its own; null leaves them on the stack.
define internal ptr @dict(ptr %keys, ptr %parts) {
entry:
  %count = field i64 %keys <SIZE>
  %items = getelementptr i8, ptr %keys, i64 <TUPLE_ITEMS>
  %new = call ptr @PyDict_New()
  %none = icmp eq ptr %new, null
  if %none goto no
  each %i below %count else done
  %key = item ptr %items %i
  %value = item ptr %parts %i
  %status = call i32 @PyDict_SetItem(ptr %new, ptr %key, ptr %value)
  %fine = icmp eq i32 %status, 0
  unless %fine goto drop
  again
drop:
  call void @Py_DecRef(ptr %new)
  br label %no
no:
  ret ptr null
done:
  call void @drop(ptr %parts, i64 %count)
  ret ptr %new
}

; Some cells of a new array or of an argument, which they keep alive.
define internal ptr @view(ptr %step, ptr %whole) {
  %view = field ptr %step <BUILD_VIEW>
  %extents = field ptr %view <VIEW_EXTENTS>
  %new = call ptr @cells(ptr %step, ptr %extents, ptr %whole)
  %none = icmp eq ptr %new, null
  if %none goto no
  call void @Py_IncRef(ptr %whole)
  %status = call i32 @PyArray_SetBaseObject(ptr %new, ptr %whole)
  %fine = icmp eq i32 %status, 0
  unless %fine goto drop
  ret ptr %new
drop:
  call void @Py_DecRef(ptr %new)
  br label %no
no:
  ret ptr null
}

; So many of an array's first cells along each axis as the kernel has counted, in an array of their own.
define internal ptr @sized(ptr %step, ptr %whole, ptr %pointers) {
entry:
  %view = field ptr %step <BUILD_VIEW>
  %rows = field ptr %view <VIEW_EXTENTS>
  %rank = field i64 %view <VIEW_RANK>
  %extents = alloca i64, i64 %rank
  each %i below %rank over %extent in %rows by <EXTENT_BYTES> else make
  br label %one
one:
  %iscounted = field i64 %extent <EXTENT_COUNTED>
  %number = field i64 %extent <EXTENT_NUMBER>
  %isconstant = icmp eq i64 %iscounted, 0
  br i1 %isconstant, label %known, label %count
count:
  %memory = item ptr %pointers %number
  %counted = load i64, ptr %memory
  br label %known
known:
  %size = phi i64 [ %number, %one ], [ %counted, %count ]
  put i64 %size in item %extents %i
  again
make:
  %cells = call ptr @cells(ptr %step, ptr %extents, ptr %whole)
  %none = icmp eq ptr %cells, null
  if %none goto no
  %new = call ptr @PyArray_NewCopy(ptr %cells, i32 0)
  call void @Py_DecRef(ptr %cells)
  ret ptr %new
no:
  ret ptr null
}

; An array of some cells of another, which it does not keep alive.
define internal ptr @cells(ptr %step, ptr %extents, ptr %whole) {
  %view = field ptr %step <BUILD_VIEW>
  %descr = field ptr %step <BUILD_DESCR>
  %rank = field i32 %view <VIEW_RANK>
  %strides = field ptr %view <VIEW_STRIDES>
  %start = field i64 %view <VIEW_START>
  %flags = field i32 %view <VIEW_FLAGS>
  %data = field ptr %whole <DATA>
  %first = getelementptr i8, ptr %data, i64 %start
  call void @Py_IncRef(ptr %descr)
  %new = call ptr @PyArray_NewFromDescr(
      ptr @rt.ndarray, ptr %descr, i32 %rank, ptr %extents, ptr %strides, ptr %first, i32 %flags, ptr null)
  ret ptr %new
}

; The number in a slot or a cell, as Python or NumPy has it.
define internal ptr @number(ptr %step, ptr %slot) {
  %kind = field i64 %step <BUILD_KIND>
  %descr = field ptr %step <BUILD_DESCR>
  switch i64 %kind, label %scalar [ i64 <BUILD_IS_FLOAT>, label %float
                                    i64 <BUILD_IS_COMPLEX>, label %complex
                                    i64 <BUILD_IS_INT>, label %int
                                    i64 <BUILD_IS_BOOL>, label %bool ]
scalar:
  %new = call ptr @PyArray_Scalar(ptr %slot, ptr %descr, ptr null)
  ret ptr %new
float:
  %real = load double, ptr %slot
  %newfloat = call ptr @PyFloat_FromDouble(double %real)
  ret ptr %newfloat
complex:
  %first = load double, ptr %slot
  %last = item double %slot 1
  %newcomplex = call ptr @PyComplex_FromDoubles(double %first, double %last)
  ret ptr %newcomplex
int:
  %integer = load i64, ptr %slot
  %newint = call ptr @PyLong_FromLongLong(i64 %integer)
  ret ptr %newint
bool:
  %bit = load i8, ptr %slot
  %wide = zext i8 %bit to i64
  %newbool = call ptr @PyBool_FromLong(i64 %wide)
  ret ptr %newbool
}
"""
