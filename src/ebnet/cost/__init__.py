"""What a network costs: operations, parameters and bytes, counted from its structure (no torch needed)."""

from ebnet.cost.profile import LayerCost as LayerCost
from ebnet.cost.profile import Profile as Profile
from ebnet.cost.profile import profile as profile
