import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * The workload of a RocketMQ sandbox, run as source: java -cp JARS Workload.java NAME_SERVERS SPEC…
 *
 * <p>A SPEC is topic:NAME:QUEUES, produce:TOPIC:PRELOADED:PER_SECOND, or
 * consume:MODE:GROUP:TOPIC:MILLIS[:SECONDS]. MODE is concurrent, orderly, broadcast, fail (no message succeeds),
 * pop, stall (nothing that begins after SECONDS ends), or leave (goes away after SECONDS, and not
 * before it has committed on every queue). TOPIC may be followed by #TAGS, as in orders#a||b; messages have the tag
 * sandbox. MILLIS is what a message takes on one of two threads. Specs are carried out in their order; READY is printed after the last. It ends with
 * its standard input.
 */
public class Workload {
    private static final String USER = System.getenv("LAGWISE_SANDBOX_USER");

    public static void main(String[] arguments) throws Exception {
        String nameServers = arguments[0];
        for (int i = 1; i < arguments.length; i++) {
            String[] spec = arguments[i].split(":");
            switch (spec[0]) {
                case "topic" -> createTopic(nameServers, spec[1], Integer.parseInt(spec[2]));
                case "produce" -> produce(nameServers, spec[1], Integer.parseInt(spec[2]), Double.parseDouble(spec[3]));
                case "consume" -> consume(nameServers, spec);
                default -> throw new IllegalArgumentException(arguments[i]);
            }
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {
            // Whoever started this lives.
        }
        Runtime.getRuntime().halt(0);
    }

    private static RPCHook signature() {
        return USER == null ? null : new AclClientRPCHook(new SessionCredentials(USER, System.getenv("LAGWISE_SANDBOX_PASSWORD")));
    }

    private static DefaultMQAdminExt admin(String nameServers) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(signature(), 10_000);
        admin.setNamesrvAddr(nameServers);
        admin.setInstanceName("sandbox-admin-" + System.nanoTime());
        admin.start();
        return admin;
    }

    private static List<String> masters(DefaultMQAdminExt admin) throws Exception {
        ClusterInfo cluster = admin.examineBrokerClusterInfo();
        List<String> masters = new ArrayList<>();
        for (BrokerData broker : cluster.getBrokerAddrTable().values()) {
            masters.add(broker.getBrokerAddrs().get(0L));
        }
        return masters;
    }

    private static void createTopic(String nameServers, String topic, int queues) throws Exception {
        DefaultMQAdminExt admin = admin(nameServers);
        for (String master : masters(admin)) {
            admin.createAndUpdateTopicConfig(master, new TopicConfig(topic, queues, queues));
        }
        admin.shutdown();
    }

    private static void produce(String nameServers, String topic, int preloaded, double perSecond) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("sandbox-producer-" + topic, signature());
        producer.setNamesrvAddr(nameServers);
        producer.setInstanceName("producer-" + topic);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        for (int sent = 0; sent < preloaded; sent += 20) {
            List<Message> batch = new ArrayList<>();
            for (int i = sent; i < Math.min(preloaded, sent + 20); i++) {
                batch.add(message(topic, i));
            }
            send(() -> producer.send(batch));
        }
        if (perSecond <= 0) {
            return;
        }
        daemon("producer-" + topic, () -> {
            long began = System.nanoTime();
            for (long sent = 1; ; sent++) {
                long number = sent;
                send(() -> producer.send(message(topic, number)));
                long wait = began + (long) (1e9 * sent / perSecond) - System.nanoTime();
                if (wait > 0) {
                    Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                }
            }
        });
    }

    private static Message message(String topic, long number) {
        return new Message(topic, "sandbox", "key" + number, ("message " + number).getBytes());
    }

    private interface Sending {
        void run() throws Exception;
    }

    /** A broker that has just started refuses messages for a moment. */
    private static void send(Sending sending) throws Exception {
        for (int attempt = 1; ; attempt++) {
            try {
                sending.run();
                return;
            } catch (InterruptedException error) {
                throw error;
            } catch (Exception error) {
                if (attempt == 60) {
                    throw error;
                }
                Thread.sleep(500);
            }
        }
    }

    private static void consume(String nameServers, String[] spec) throws Exception {
        String mode = spec[1];
        String group = spec[2];
        String[] wanted = spec[3].split("#");
        String topic = wanted[0];
        int millis = Integer.parseInt(spec[4]);
        double seconds = spec.length > 5 ? Double.parseDouble(spec[5]) : Double.POSITIVE_INFINITY;
        if (mode.equals("pop")) {
            DefaultMQAdminExt admin = admin(nameServers);
            for (String master : masters(admin)) {
                admin.setMessageRequestMode(master, topic, group, MessageRequestMode.POP, 0, 5_000);
            }
            admin.shutdown();
        }
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, signature());
        consumer.setNamesrvAddr(nameServers);
        consumer.setInstanceName(group + "-" + Long.toHexString(System.nanoTime()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.setPersistConsumerOffsetInterval(1_000);
        if (mode.equals("pop")) {
            consumer.setClientRebalance(false);
            consumer.setPopInvisibleTime(60_000);
        }
        if (mode.equals("broadcast")) {
            consumer.setMessageModel(MessageModel.BROADCASTING);
        }
        if (mode.equals("fail")) {
            consumer.setMaxReconsumeTimes(2);
        }
        consumer.subscribe(topic, wanted.length > 1 ? wanted[1] : "*");
        long began = System.nanoTime();
        boolean hangs = mode.equals("stall");
        MessageListenerConcurrently concurrently = (messages, context) -> {
            work(millis);
            if (hangs && System.nanoTime() - began > seconds * 1e9) {
                forever();
            }
            return mode.equals("fail") ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        MessageListenerOrderly orderly = (messages, context) -> {
            work(millis);
            return ConsumeOrderlyStatus.SUCCESS;
        };
        if (mode.equals("orderly")) {
            consumer.registerMessageListener(orderly);
        } else {
            consumer.registerMessageListener(concurrently);
        }
        consumer.start();
        if (mode.equals("leave")) {
            daemon("leave-" + group, () -> {
                Thread.sleep((long) (seconds * 1000));
                OffsetStore offsets = consumer.getDefaultMQPushConsumerImpl().getOffsetStore();
                for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
                    // Of a queue that was never committed, brokers may say 0.
                    while (offsets.readOffset(queue, ReadOffsetType.READ_FROM_STORE) <= 0) {
                        Thread.sleep(100);
                        consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
                    }
                }
                consumer.shutdown();
            });
        }
    }

    private static void work(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void forever() {
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void daemon(String name, Sending task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception error) {
                System.err.println(name + " ended: " + error);
                Runtime.getRuntime().halt(1);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
