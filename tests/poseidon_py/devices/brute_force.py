"""All solutions of a small allocation, and a checker of one: written from the documentation of the API, without a line
of the allocator."""

from collections import Counter
from itertools import combinations, product
from math import ceil

from poseidon_py.kube.quantity import nanos
from tests.poseidon_py.devices import offers


def choices(request, node, use):
    """Pairs of an alternative and devices, for one request."""
    for option in request.alternatives:
        good = _suitable(option, node, use, offers.suits)
        if option.number == 0:
            if good and not node.problems:
                yield option, tuple(good)
        else:
            yield from ((option, chosen) for chosen in combinations(good, option.number))


def solutions(claims, node, use):
    """All that are valid, as lists of (claim, request, alternative, devices)."""
    asks = [(at, request) for at, claim in enumerate(claims) for request in claim.requests]
    for picked in product(*(list(choices(request, node, use)) for _, request in asks)):
        found = [(at, request, option, devices) for (at, request), (option, devices) in zip(asks, picked, strict=True)]
        if _go_together(claims, found, node, use):
            yield found


def as_found(claims, solution):
    """The allocator's solution in that form."""
    found = []
    for at, grants in enumerate(solution):
        for request in claims[at].requests:
            labels = {each.label for each in request.alternatives}
            mine = [grant for grant in grants if grant.asked.label in labels]
            assert len({grant.asked.label for grant in mine}) == 1
            found.append((at, request, mine[0].asked, tuple(grant.device for grant in mine)))
    assert sum(len(devices) for *_, devices in found) == sum(map(len, solution))
    return found


def is_solvable(claims, node, use):
    return next(solutions(claims, node, use), None) is not None


def amounts(device, option):
    """Amount of each capacity that a request takes of a device; None: it cannot."""
    asked = {name if "/" in name else f"{device.id.driver}/{name}": amount for name, amount in option.capacity}
    if set(asked) - set(device.capacity):
        return None
    found = {}
    for name, facts in device.capacity.items():
        policy, want = facts.policy, asked.get(name)
        if want is None:
            want = nanos(str(policy.default)) if policy and policy.default is not None else facts.value
        elif policy and not (policy.default is not None and want == nanos(str(policy.default))):
            if policy.valid_range:
                low, step = nanos(str(policy.valid_range.min)), policy.valid_range.step
                if step and want > low:
                    asked_for, grid, amount = (ceil(each / 10**9) for each in (want, nanos(str(step)), low))
                    while amount < asked_for:
                        amount += grid
                    want = amount * 10**9
                want = max(want, low)
                if policy.valid_range.max is not None and want > nanos(str(policy.valid_range.max)):
                    return None
            elif policy.valid_values:
                above = sorted(nanos(str(v)) for v in policy.valid_values if nanos(str(v)) >= want)
                if not above:
                    return None
                want = above[0]
        if want > facts.value:
            return None
        found[name] = want
    return found


def _suitable(option, node, use, suits):
    return [each for each in node.devices if suits(option.selection, each) and _has_capacity(each, option, use)]


def _has_capacity(device, option, use):
    """Whether a request for all counts the device: a shared one that lacks capacity by now is left out."""
    taken = amounts(device, option)
    if taken is None or option.admin or not device.shareable:
        return taken is not None
    used = use.shared.get(device.id, {})
    return all(used.get(name, 0) + amount <= device.capacity[name].value for name, amount in taken.items())


def is_valid(claims, found, node, use, *, suits=offers.suits, others=()):
    """`found` as solutions() has them. `others`: devices of the pools that the node does not reach."""
    for at, request, option, devices in found:
        good = _suitable(option, node, use, suits)
        if request not in claims[at].requests or option not in request.alternatives or not set(devices) <= set(good):
            return False
        if node.problems if option.number == 0 else len(devices) != option.number:
            return False
        if option.number == 0 and (not good or len(devices) != len(good)):
            return False
    per_claim = Counter(at for at, *_, devices in found for _ in devices)
    return all(number <= 32 for number in per_claim.values()) and _go_together(claims, found, node, use, others)


def _go_together(claims, found, node, use, others=()):
    shared = {device: Counter(used) for device, used in use.shared.items()}
    counters = dict(node.counters)
    taken: Counter = Counter()
    once: Counter = Counter()
    counted, concerned = set(), set()
    for device in (*node.devices, *others):
        if device.id in use.whole or device.id in use.shared:
            counted.add(device.id)
            for key, amount in device.consumes:
                counters[key] = counters.get(key, 0) - amount
    for at, _request, option, devices in found:
        if len(set(devices)) != len(devices):
            return False
        for device in devices:
            if any(
                each.effect in ("NoSchedule", "NoExecute")
                and not any(toleration.covers(each) for toleration in option.selection.tolerations)
                for each in device.taints
            ):
                return False
            if option.admin:
                if not device.shareable:
                    once[at, device.id] += 1
                    if once[at, device.id] > 1:
                        return False
                continue
            once[at, device.id] += not device.shareable
            if once[at, device.id] > 1:
                return False
            if device.shareable:
                if device.id in use.whole:
                    return False
                shared.setdefault(device.id, Counter()).update(amounts(device, option))
            else:
                taken[device.id] += 1
                if taken[device.id] > 1 or device.id in use.whole or device.id in use.shared:
                    return False
            if device.id not in counted:
                counted.add(device.id)
                for key, amount in device.consumes:
                    counters[key] -= amount
                    concerned.add(key)
    if any(counters[key] < 0 for key in concerned):
        return False
    facts = {device.id: device for device in node.devices}
    for ident, used in shared.items():
        if ident in facts and any(used[name] > value.value for name, value in facts[ident].capacity.items()):
            return False
    return all(_holds(constraint, at, found) for at, claim in enumerate(claims) for constraint in claim.constraints)


def _holds(constraint, at, found):
    concerned = [
        device
        for claim, request, option, devices in found
        if claim == at
        and (not constraint.requests or request.name in constraint.requests or option.label in constraint.requests)
        for device in devices
    ]
    values = [device.attributes.get(constraint.attribute) for device in concerned]
    if not all(values):
        return False
    if constraint.distinct:
        return all(not (one & other) for one, other in combinations(values, 2))
    return not values or bool(frozenset.intersection(*values))
