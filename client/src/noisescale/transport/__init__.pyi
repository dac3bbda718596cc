from noisescale.transport.spool.disk_spool import DiskSpool as DiskSpool
from noisescale.transport.spool.spool import MemorySpool as MemorySpool
from noisescale.transport.spool.spool import Spool as Spool
from noisescale.transport.upload.http import HttpServer as HttpServer
from noisescale.transport.upload.late_delivery import Outcome as Outcome
from noisescale.transport.upload.late_delivery import adopt as adopt
from noisescale.transport.upload.stream import Stream as Stream
from noisescale.transport.upload.uploader import Uploader as Uploader
