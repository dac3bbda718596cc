from noisescale.capture.data_parallel.ddp import DdpJob as DdpJob
from noisescale.capture.data_parallel.fsdp import FsdpJob as FsdpJob
