# Writes the checkpoints of this folder and what is in them, by PyTorch itself: python3 make.py, in this folder.
import torch, torch.nn as nn
T = ''
torch.manual_seed(0)
m=nn.Sequential(nn.Conv2d(1,2,3),nn.BatchNorm2d(2),nn.Flatten(),nn.Linear(8,3,bias=False)).float()
class Tied(nn.Module):
    def __init__(s):
        super().__init__(); s.emb=nn.Embedding(10,4).half(); s.head=nn.Linear(4,10,bias=False).half(); s.head.weight=s.emb.weight
t=Tied()
opt=torch.optim.Adam(m.parameters()); m(torch.zeros(2,1,4,4)).sum().backward(); opt.step()
def want(name, items):
    open(T+name+'.want','w').write(''.join(f"{k} {b} {'float' if f else 'other'}\n" for k,b,f in items))
def of(sd,pre=''):
    seen=set(); out=[]
    for k,v in sd.items():
        if v.data_ptr() in seen: continue
        seen.add(v.data_ptr()); out.append((pre+k,v.numel()*v.element_size(),v.is_floating_point() or v.is_complex()))
    return out
torch.save(m.state_dict(),T+'state.pt'); want('state.pt',of(m.state_dict()))
torch.save({'epoch':3,'model_state_dict':m.state_dict(),'optimizer_state_dict':opt.state_dict(),'loss':torch.tensor(0.5)},T+'training.pt'); want('training.pt',of(m.state_dict()))
torch.save(t.state_dict(),T+'tied.pt'); want('tied.pt',of(t.state_dict()))
torch.save(m,T+'module.pt'); want('module.pt',of(m.state_dict()))
flat=torch.arange(12,dtype=torch.float64)
views={'a':flat[:5],'b':flat[5:],'again':flat[:5],'wide':torch.zeros(1).expand(100),'i':torch.zeros(3,dtype=torch.int64),'c':torch.zeros(2,dtype=torch.complex64),'h':torch.zeros(2,dtype=torch.bfloat16),'p':nn.Parameter(torch.zeros(7)),'none':None,'cfg':{'lr':1e-3,'betas':(0.9,0.999),'big':1<<70,'neg':-5,'name':'x','empty':[],'s':{1,2}}, 'list':[torch.zeros(2),{'deep':torch.zeros(3)}], 'empty':torch.zeros(0)}
torch.save(views,T+'views.pt'); want('views.pt',[('a',40,True),('b',56,True),('wide',4,True),('i',24,False),('c',16,True),('h',4,True),('p',28,True),('list.0',8,True),('list.1.deep',12,True)])
torch.save(views,T+'views4.pt',pickle_protocol=4); want('views4.pt',[('a',40,True),('b',56,True),('wide',4,True),('i',24,False),('c',16,True),('h',4,True),('p',28,True),('list.0',8,True),('list.1.deep',12,True)])
torch.save(m.state_dict(),T+'legacy.pt',_use_new_zipfile_serialization=False)
