import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors: a group a line in, what each of them gives a line out, both as JSON.
 *
 * Written for the small compiler that ships with Spark (Janino), so that a Java without a compiler will do: no lambdas,
 * and casts where generics would do.
 */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] NAMES = {"range", "roundrobin", "sticky", "cooperative-sticky"};
    private static final int MOST_REBALANCES = 20;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        String line;
        while ((line = in.readLine()) != null) {
            Map group = (Map) JSON.readValue(line, Map.class);
            Map result = new HashMap();
            for (int i = 0; i < NAMES.length; i++) {
                result.put(NAMES[i], outcome(NAMES[i], group));
            }
            out.println(JSON.writeValueAsString(result));
        }
        out.flush();
    }

    /** The assignment once the group has come to rest, or null where the assignor fails. */
    private static Map outcome(String name, Map group) {
        Map owned = new HashMap();
        Map generations = new HashMap();
        for (Iterator it = ((List) group.get("members")).iterator(); it.hasNext();) {
            Map member = (Map) it.next();
            List partitions = new ArrayList();
            for (Iterator its = ((List) member.get("owned")).iterator(); its.hasNext();) {
                List pair = (List) its.next();
                partitions.add(new TopicPartition((String) pair.get(0), ((Integer) pair.get(1)).intValue()));
            }
            owned.put(member.get("id"), partitions);
            Integer generation = (Integer) member.get("generation");
            generations.put(member.get("id"), generation == null ? Integer.valueOf(-1) : generation);
        }
        for (int rebalance = 1; rebalance <= MOST_REBALANCES; rebalance++) {
            Map given;
            try {
                given = assign(name, group, owned, generations);
            } catch (RuntimeException failed) {
                return null;
            }
            if (nothingWaits(group, given)) {
                Map result = new HashMap();
                result.put("rebalances", Integer.valueOf(rebalance));
                result.put("assignment", written(given));
                return result;
            }
            Integer next = Integer.valueOf(((Integer) Collections.max(generations.values())).intValue() + 1);
            owned = given;
            for (Iterator it = given.keySet().iterator(); it.hasNext();) {
                generations.put(it.next(), next);
            }
        }
        return null;
    }

    /** Every partition that somebody subscribes to has an owner: the next rebalance has nothing to hand out. */
    private static boolean nothingWaits(Map group, Map given) {
        Set topics = new HashSet();
        for (Iterator it = ((List) group.get("members")).iterator(); it.hasNext();) {
            topics.addAll((List) ((Map) it.next()).get("topics"));
        }
        int expected = 0;
        for (Iterator it = topics.iterator(); it.hasNext();) {
            Integer count = (Integer) ((Map) group.get("partitions")).get(it.next());
            expected += count == null ? 0 : count.intValue();
        }
        int found = 0;
        for (Iterator it = given.values().iterator(); it.hasNext();) {
            found += ((List) it.next()).size();
        }
        return found == expected;
    }

    private static Map assign(String name, Map group, Map owned, Map generations) {
        Map subscriptions = new HashMap();
        for (Iterator it = ((List) group.get("members")).iterator(); it.hasNext();) {
            Map member = (Map) it.next();
            String id = (String) member.get("id");
            List topics = (List) member.get("topics");
            List has = (List) owned.get(id);
            int generation = ((Integer) generations.get(id)).intValue();
            ByteBuffer data = null;
            if (name.equals("sticky") && generation >= 0) {
                StickyAssignor its = new StickyAssignor();
                its.onAssignment(
                    new ConsumerPartitionAssignor.Assignment(has),
                    new ConsumerGroupMetadata("group", generation, id, Optional.empty()));
                data = its.subscriptionUserData(new HashSet(topics));
            }
            ConsumerPartitionAssignor.Subscription subscription =
                new ConsumerPartitionAssignor.Subscription(topics, data, has, generation, Optional.empty());
            subscription.setGroupInstanceId(Optional.ofNullable((String) member.get("instance")));
            subscriptions.put(id, subscription);
        }
        ConsumerPartitionAssignor.GroupSubscription all =
            new ConsumerPartitionAssignor.GroupSubscription(subscriptions);
        Map counts = (Map) group.get("partitions");
        Map assignments = assignor(name).assign(cluster(counts), all).groupAssignment();
        Map given = new HashMap();
        for (Iterator it = assignments.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            given.put(entry.getKey(), ((ConsumerPartitionAssignor.Assignment) entry.getValue()).partitions());
        }
        return given;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        if (name.equals("range")) {
            return new RangeAssignor();
        }
        if (name.equals("roundrobin")) {
            return new RoundRobinAssignor();
        }
        if (name.equals("sticky")) {
            return new StickyAssignor();
        }
        return new CooperativeStickyAssignor();
    }

    private static Cluster cluster(Map counts) {
        Node node = new Node(0, "localhost", 9092);
        Node[] replicas = new Node[] {node};
        List partitions = new ArrayList();
        for (Iterator it = counts.keySet().iterator(); it.hasNext();) {
            String topic = (String) it.next();
            for (int i = 0; i < ((Integer) counts.get(topic)).intValue(); i++) {
                partitions.add(new PartitionInfo(topic, i, node, replicas, replicas));
            }
        }
        return new Cluster("cluster", Collections.singletonList(node), partitions, new HashSet(), new HashSet());
    }

    private static Map written(Map given) {
        Map result = new HashMap();
        for (Iterator it = given.keySet().iterator(); it.hasNext();) {
            Object id = it.next();
            List partitions = new ArrayList();
            for (Iterator its = ((List) given.get(id)).iterator(); its.hasNext();) {
                TopicPartition partition = (TopicPartition) its.next();
                List pair = new ArrayList();
                pair.add(partition.topic());
                pair.add(Integer.valueOf(partition.partition()));
                partitions.add(pair);
            }
            result.put(id, partitions);
        }
        return result;
    }
}
