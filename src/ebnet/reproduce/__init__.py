"""The paper's claims as experiments: declared in `claims/*.toml`, run stage by stage, judged from what was measured.

from ebnet.reproduce import Records, judge, load_claim

print(judge(load_claim("experts"), Records("results")).verdict)
"""

from typing import TYPE_CHECKING

from ebnet.lazy import on_first_use

if TYPE_CHECKING:
    from ebnet.reproduce.claim import Claim as Claim
    from ebnet.reproduce.claim import claim_names as claim_names
    from ebnet.reproduce.claim import load_claim as load_claim
    from ebnet.reproduce.records import Records as Records
    from ebnet.reproduce.verdict import judge as judge

__all__, __getattr__ = on_first_use(
    __name__,
    {
        "ebnet.reproduce.claim": ("Claim", "claim_names", "load_claim"),
        "ebnet.reproduce.records": ("Records",),
        "ebnet.reproduce.verdict": ("judge",),
    },
)
