"""Binary layers, each usable on its own in any torch model."""

from ebnet.nn.binary_conv import BinaryConv2d as BinaryConv2d
from ebnet.nn.binary_linear import BinaryLinear as BinaryLinear
from ebnet.nn.cond_conv import CondBinaryConv2d as CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d as ExpertBinaryConv2d
from ebnet.nn.gate import Gate as Gate
from ebnet.nn.precision import Precision as Precision
from ebnet.nn.precision import set_precision as set_precision
from ebnet.nn.scaling import DataDrivenScaling as DataDrivenScaling
from ebnet.nn.sign import Ste as Ste
from ebnet.nn.sign import sign as sign
