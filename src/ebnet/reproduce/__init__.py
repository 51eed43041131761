"""The paper's claims as experiments: declared in `claims/*.toml`, run stage by stage, judged from what was measured."""

from ebnet.reproduce.claim import Claim, claim_names, load_claim
from ebnet.reproduce.records import Records
from ebnet.reproduce.verdict import judge

__all__ = ["Claim", "Records", "claim_names", "judge", "load_claim"]
