// Writes tests/collectors/golden/offsets_topic.json: records of __consumer_offsets as Kafka's own classes serialise them.
//   java -cp "KAFKA_JARS/*" tests/collectors/golden/WriteRecords.java > tests/collectors/golden/offsets_topic.json
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.coordinator.group.generated.*;

public class WriteRecords {
    static final Uuid TOPIC = Uuid.fromString("XOEvkQFwQ7avCofSZzfbGQ");
    static final List<String> lines = new ArrayList<>();

    static void put(String name, int prefix, Message message, int version) {
        ByteBuffer bytes = prefix < 0
            ? MessageUtil.toVersionPrefixedByteBuffer((short) version, message)
            : MessageUtil.toCoordinatorTypePrefixedByteBuffer((ApiMessage) message);
        StringBuilder hex = new StringBuilder();
        while (bytes.hasRemaining()) hex.append(String.format("%02x", bytes.get()));
        lines.add("  \"" + name + "\": \"" + hex + "\"");
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] found = new byte[buffer.remaining()];
        buffer.duplicate().get(found);
        return found;
    }

    public static void main(String[] arguments) {
        put("key.0", 0, new LegacyOffsetCommitKey().setGroup("grüppe").setTopic("orders").setPartition(7), 0);
        put("key.1", 0, new OffsetCommitKey().setGroup("grüppe").setTopic("orders").setPartition(7), 0);
        put("key.2", 0, new GroupMetadataKey().setGroup("grüppe"), 0);
        put("key.3", 0, new ConsumerGroupMetadataKey().setGroupId("g"), 0);
        put("key.4", 0, new ConsumerGroupPartitionMetadataKey().setGroupId("g"), 0);
        put("key.5", 0, new ConsumerGroupMemberMetadataKey().setGroupId("g").setMemberId("m"), 0);
        put("key.6", 0, new ConsumerGroupTargetAssignmentMetadataKey().setGroupId("g"), 0);
        put("key.7", 0, new ConsumerGroupTargetAssignmentMemberKey().setGroupId("g").setMemberId("m"), 0);
        put("key.8", 0, new ConsumerGroupCurrentMemberAssignmentKey().setGroupId("g").setMemberId("m"), 0);
        put("key.11", 0, new ShareGroupMetadataKey().setGroupId("g"), 0);
        put("key.16", 0, new ConsumerGroupRegularExpressionKey().setGroupId("g").setRegularExpression("o.*"), 0);
        put("key.17", 0, new StreamsGroupMetadataKey().setGroupId("g"), 0);
        for (int version = 0; version <= 4; version++) {
            for (String metadata : new String[] {"", "T1=3ms", "x".repeat(200)}) {
                OffsetCommitValue value = new OffsetCommitValue().setOffset(4_000_000_000L).setMetadata(metadata)
                    .setCommitTimestamp(1795280175323L);
                if (version == 1) value.setExpireTimestamp(1795290000000L);
                if (version >= 3) value.setLeaderEpoch(5);
                if (version >= 4 && !metadata.isEmpty()) value.setTopicId(TOPIC);
                put("commit.v" + version + "." + metadata.length(), -1, value, version);
            }
            GroupMetadataValue group = new GroupMetadataValue().setProtocolType("consumer").setGeneration(12)
                .setProtocol("range").setLeader("a-1");
            if (version >= 2) group.setCurrentStateTimestamp(1795280175323L);
            byte[] subscription = bytes(ConsumerProtocol.serializeSubscription(new Subscription(
                List.of("orders", "bills"), ByteBuffer.wrap(new byte[] {1, 2}), List.of(new TopicPartition("orders", 0)))));
            byte[] assignment = bytes(ConsumerProtocol.serializeAssignment(new Assignment(
                List.of(new TopicPartition("orders", 1), new TopicPartition("orders", 0), new TopicPartition("bills", 2)))));
            GroupMetadataValue.MemberMetadata member = new GroupMetadataValue.MemberMetadata().setMemberId("a-1")
                .setClientId("a").setClientHost("/10.0.0.1").setSessionTimeout(45000)
                .setSubscription(subscription).setAssignment(assignment);
            if (version >= 1) member.setRebalanceTimeout(300000);
            if (version >= 3) member.setGroupInstanceId("node-1");
            GroupMetadataValue.MemberMetadata standby = member.duplicate().setMemberId("b-1").setAssignment(new byte[0]);
            if (version >= 3) standby.setGroupInstanceId(null);
            group.setMembers(List.of(member, standby));
            put("group.v" + version, -1, group, version);
            put("group.v" + version + ".empty", -1, new GroupMetadataValue().setProtocolType("consumer").setGeneration(13), version);
            put("group.v" + version + ".connect", -1, new GroupMetadataValue().setProtocolType("connect").setGeneration(1)
                .setMembers(List.of(member.duplicate().setSubscription(new byte[] {9}).setAssignment(new byte[] {9}))), version);
        }
        put("epoch", -1, new ConsumerGroupMetadataValue().setEpoch(3).setMetadataHash(99L), 0);
        put("target", -1, new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(4), 0);
        put("partitions", -1, new ConsumerGroupPartitionMetadataValue().setTopics(List.of(
            new ConsumerGroupPartitionMetadataValue.TopicMetadata().setTopicId(TOPIC).setTopicName("orders").setNumPartitions(3)
                .setPartitionMetadata(List.of(new ConsumerGroupPartitionMetadataValue.PartitionMetadata().setPartition(0)
                    .setRacks(List.of("r1", "r2")))))), 0);
        put("member", -1, new ConsumerGroupMemberMetadataValue().setInstanceId("node-1").setRackId("r1").setClientId("a")
            .setClientHost("/10.0.0.1").setSubscribedTopicNames(List.of("orders", "bills")).setSubscribedTopicRegex("o.*")
            .setRebalanceTimeoutMs(300000).setServerAssignor("uniform"), 0);
        put("member.converted", -1, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setClientId("a").setClientHost("/10.0.0.1")
            .setSubscribedTopicNames(List.of("orders")).setClassicMemberMetadata(
                new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(45000).setSupportedProtocols(
                    List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("range").setMetadata(new byte[] {1})))), 0);
        put("target.member", -1, new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(TOPIC).setPartitions(List.of(2, 0)))), 0);
        put("current", -1, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(3).setPreviousMemberEpoch(2)
            .setState((byte) 1)
            .setAssignedPartitions(List.of(new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
                .setTopicId(TOPIC).setPartitions(List.of(0)).setAssignmentEpochs(List.of(3))))
            .setPartitionsPendingRevocation(List.of(new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
                .setTopicId(TOPIC).setPartitions(List.of(1)))), 0);
        System.out.println("{\n" + String.join(",\n", lines) + "\n}");
    }
}
