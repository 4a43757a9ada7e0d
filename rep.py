import pickle,sys,numpy as np,warnings
warnings.simplefilter('ignore'); np.seterr(all='ignore')
sys.argv=[*sys.argv]; f=sys.argv[1]
import arrayjit
s,args,tgt,kw,tol=pickle.load(open(f,'rb')); print(s,[(getattr(a,'shape',0),getattr(a,'dtype',0)) for a in args],tgt,kw,tol)
ns={'np':np}; exec(s,ns)
def run(fn):
    A=[a.copy() if hasattr(a,'copy') else a for a in args]
    try: r=fn(*A)
    except Exception as e: return [repr(e)[:300]],A
    return (list(r) if isinstance(r,tuple) else [r]),A
w,A=run(ns['f'])
for t,k in (('sync_llvm',{}),('llvm',{'threads':1}),('llvm',{'threads':2}),('interp',{}),('sync_c',{})):
    g,B=run(arrayjit.jit(ns['f'],target=t,**k))
    for i,(x,y) in enumerate(zip(w+A,g+B)):
        if isinstance(x,str) or isinstance(y,str): print(t,k,i,str(x)[:200],'|',str(y)[:300]); continue
        x,y=np.asarray(x),np.asarray(y)
        if x.shape!=y.shape or not np.array_equal(x,y,equal_nan=x.dtype.kind in 'fc'):
            d=np.argwhere(~((x==y)|((x!=x)&(y!=y)))) if x.shape==y.shape else []
            print(t,k,'out',i,x.dtype,y.dtype,x.shape,y.shape,d[:3].tolist(),len(d),x[tuple(d[0])] if len(d) else '',y[tuple(d[0])] if len(d) else '')
