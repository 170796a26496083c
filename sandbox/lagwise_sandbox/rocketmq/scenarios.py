"""The scenarios of the demo on RocketMQ: the same shop, with a consumer group for each consumption mode."""

from lagwise.domain.vocabulary import Status
from lagwise_sandbox.scenarios import KILLED_AFTER_SECONDS, STALLS_AFTER_SECONDS, DemoScenario

SCENARIOS: tuple[DemoScenario, ...] = (
    DemoScenario("billing", "orders", "It reads every order within a second or two.", (Status.OK,)),
    DemoScenario(
        "search-indexer",
        "product-changes",
        "The search index takes half as many changes as the shop makes, so the backlog grows steadily.",
        (Status.FALLING_BEHIND,),
    ),
    DemoScenario("ledger", "orders", "It reads each queue in order, one message after the other.", (Status.OK,)),
    DemoScenario(
        "price-board",
        "product-changes",
        "It broadcasts: each instance shows every change, and nothing is committed at the broker.",
        (Status.OK,),
    ),
    DemoScenario(
        "email-sender",
        "email-requests",
        "Not one e-mail can be sent: each is tried again twice and ends in the dead-letter topic.",
        (Status.OK, Status.CATCHING_UP),
    ),
    DemoScenario(
        "coupons",
        "coupon-requests",
        "It pops: messages are handed out one by one and acknowledged one by one.",
        (Status.OK,),
    ),
    DemoScenario(
        "fraud-check",
        "payments",
        "Its scoring service hangs: it stays in the group, but nothing is finished any more.",
        (Status.STALLED,),
    ),
    DemoScenario(
        "warehouse-sync",
        "shipments",
        "Its only instance was shut down, and no consumer reads the shipments any more.",
        (Status.STOPPED,),
    ),
)

#: What makes them so, in the grammar of ``Workload.java``.
SPECS: tuple[str, ...] = (
    "topic:orders:4",
    "topic:product-changes:4",
    "topic:email-requests:2",
    "topic:coupon-requests:2",
    "topic:payments:2",
    "topic:shipments:2",
    "produce:orders:0:60",
    "produce:product-changes:0:80",
    "produce:email-requests:20:1",
    "produce:coupon-requests:0:20",
    "produce:payments:0:20",
    "produce:shipments:0:20",
    "consume:concurrent:billing:orders:5",
    "consume:concurrent:search-indexer:product-changes:50",
    "consume:orderly:ledger:orders:2",
    "consume:broadcast:price-board:product-changes:2",
    "consume:fail:email-sender:email-requests:5",
    "consume:pop:coupons:coupon-requests:5",
    f"consume:stall:fraud-check:payments:5:{STALLS_AFTER_SECONDS:g}",
    f"consume:leave:warehouse-sync:shipments:5:{KILLED_AFTER_SECONDS:g}",
)
