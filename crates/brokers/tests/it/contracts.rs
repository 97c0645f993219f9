//! The suites that every adapter passes.

use crate::scene::{Kind, for_all, options};
use trellis_brokers::{BusOptions, QueueKind};
use trellis_orchestrator::contract;

for_all!(queue, stream);

async fn queue(kind: Kind) {
    let bus = kind.shared().connect(&options()).await;
    contract::queue::suite(bus.queue).await;
}

async fn stream(kind: Kind) {
    let server = kind.shared();
    let fresh = || async {
        let options = options();
        [server.connect(&options).await.stream, server.connect(&options).await.stream]
    };
    contract::stream::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quorum_queues_of_rabbitmq() {
    let options = BusOptions { queue_kind: QueueKind::Quorum, lanes: 2, ..options() };
    let bus = Kind::RabbitMq.shared().connect(&options).await;
    contract::queue::suite(bus.queue).await;
}
