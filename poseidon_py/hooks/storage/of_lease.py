"""The store of the process that leads by a lease: its name follows from that of the lease, so that two schedulers, or
two controllers of jobs, in one namespace have a store each."""

import msgspec

from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.storage.config_maps import Api, ConfigMapStore, Inheritance
from poseidon_py.util.ids import hash64

_LABEL_LENGTH = 63
"""Of the value of a label, which the name is."""


def store_name(kind: str, lease: str, default_lease: str) -> str:
    """The name of the store: that of the kind for the lease which is the default of its command."""
    if lease == default_lease:
        return kind
    name = f"{kind}.{lease}"
    return name if len(name) <= _LABEL_LENGTH else f"{kind}.{hash64(lease.encode()):016x}"


def store_of_lease(
    api: Api, config: HookConfig, kind: str, lease: str, lease_namespace: str, holder: str, *, default_lease: str
) -> ConfigMapStore:
    """`kind`: scheduler or jobs. `holder`: unique to the process and its term as the leader.

    Before stores had the names of leases, all had that of the default one. What is left there of the hooks of this
    process is taken over, unless the process of the default lease has marked it as its own.
    """
    hooks = {hook.name for hook in config.hooks}

    def is_of_hooks(text: str) -> bool:
        try:
            return msgspec.json.decode(text, type=Record).hook in hooks
        except (ValueError, RecursionError):
            return False

    name = store_name(kind, lease, default_lease)
    inheritance = Inheritance(kind, is_of_hooks) if name != kind else None
    namespace = config.namespace or lease_namespace
    return ConfigMapStore(api, namespace, name, holder, lease=f"{lease_namespace}/{lease}", inheritance=inheritance)
