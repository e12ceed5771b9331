import { AssignerProtocol } from 'kafkajs';
import { expect } from 'vitest';
import { refusalOf } from './contract-rows.ts';
import type { BrokerConnection, KafkaEngine } from './kafka-engines.ts';

/** The least that Kafka's brokers allow by default, in milliseconds. */
const SESSION_TIMEOUT_MS = 6_000;
const REBALANCE_TIMEOUT_MS = 3_000;
const FETCH_WAIT_MS = 300;

type Contract = (engine: KafkaEngine) => Promise<void>;

/** What we believe about consumer groups. */
const GROUPS: Readonly<Record<string, Contract>> = {
  async 'a group that nobody knew begins with generation 1, led by its first member'(engine) {
    const first = await Member.join(engine);
    expect(first.generation).toBe(1);
    expect(first.leaderId).toBe(first.id);
    expect(first.members).toEqual([first.id]);
  },
  async 'a member that nobody knows is refused, whatever it asks for'(engine) {
    const member = await Member.join(engine);
    const stranger = new Member(engine, await engine.connect(), { ...member.joined, memberId: 'nobody' });
    expect(await refusalOf(stranger.join())).toBe('UNKNOWN_MEMBER_ID');
    expect(await refusalOf(stranger.sync([]))).toBe('UNKNOWN_MEMBER_ID');
    expect(await refusalOf(stranger.heartbeat())).toBe('UNKNOWN_MEMBER_ID');
    expect(await refusalOf(stranger.commit(1))).toBe('UNKNOWN_MEMBER_ID');
  },
  async 'groups know nothing of each other: members, generations and committed offsets are their own'(engine) {
    const one = await stable(engine);
    await one.commit(7);
    const ofOther = { ...engine, groupId: `${engine.groupId}-other` };
    const other = await stable(ofOther);
    expect(other.generation).toBe(1);
    expect(other.members).toEqual([other.id]);
    expect(await committed(ofOther, other.broker)).toEqual(['-1', '-1']);
    await other.commit(3);
    expect(await refusalOf(one.heartbeat())).toBe('nothing');
    expect(await committed(engine, one.broker)).toEqual(['7', '-1']);
    expect(await committed(ofOther, other.broker)).toEqual(['3', '-1']);
  },
  async 'a member that joins has the others join again, in a new generation'(engine) {
    const [one, other] = await pair(engine);
    expect([one.generation, other.generation]).toEqual([2, 2]);
    expect(one.leaderId).toBe(other.leaderId);
  },
  async 'members are told that the group rebalances by their heartbeats'(engine) {
    const one = await stable(engine);
    const joining = Member.join(engine);
    expect(await firstRefusalOf(engine, one)).toBe('REBALANCE_IN_PROGRESS');
    await Promise.all([one.join(), joining]);
  },
  async 'only the leader is told who the members are'(engine) {
    const [one, other] = await pair(engine);
    const [leader, follower] = one.leaderId === one.id ? [one, other] : [other, one];
    expect(leader.members.toSorted()).toEqual([one.id, other.id].sort());
    expect(follower.members).toEqual([]);
  },
  async 'a member waits for its assignment until the leader has sent it'(engine) {
    const [one, other] = await pair(engine);
    const [leader, follower] = one.leaderId === one.id ? [one, other] : [other, one];
    let isAssigned = false;
    const waiting = follower.sync([]).then((assignment) => {
      isAssigned = true;
      return assignment;
    });
    await engine.sleep(500);
    expect(isAssigned).toBe(false);
    expect(await leader.sync([leader, follower])).toBe(`for ${leader.id}`);
    expect(await waiting).toBe(`for ${follower.id}`);
  },
  async 'a heartbeat after the join and before the assignment is taken'(engine) {
    const member = await Member.join(engine);
    expect(await refusalOf(member.heartbeat())).toBe('nothing');
  },
  async 'a commit before the assignment is refused'(engine) {
    const member = await Member.join(engine);
    expect(await refusalOf(member.commit(1))).toBe('REBALANCE_IN_PROGRESS');
  },
  async 'heartbeat, commit and assignment in the name of an older generation are refused'(engine) {
    const [one, other] = await pair(engine);
    const late = new Member(engine, one.broker, { ...one.joined, generationId: 1 });
    expect(await refusalOf(late.heartbeat())).toBe('ILLEGAL_GENERATION');
    expect(await refusalOf(late.commit(1))).toBe('ILLEGAL_GENERATION');
    expect(await refusalOf(late.sync([one, other]))).toBe('ILLEGAL_GENERATION');
  },
  async 'a commit while the group rebalances is taken from a member of its last generation'(engine) {
    const one = await stable(engine);
    const joining = Member.join(engine);
    expect(await firstRefusalOf(engine, one)).toBe('REBALANCE_IN_PROGRESS');
    expect(await refusalOf(one.commit(7))).toBe('nothing');
    expect(await committed(engine, one.broker)).toEqual(['7', '-1']);
    await Promise.all([one.join(), joining]);
  },
  async 'a member that is silent is expelled after its session timeout, and the others join again'(engine) {
    const begunAt = engine.now();
    const [one, other] = await pair(engine);
    await Promise.all([one.sync([one, other]), other.sync([one, other])]);
    expect(await firstRefusalOf(engine, one)).toBe('REBALANCE_IN_PROGRESS');
    expect(engine.now() - begunAt).toBeGreaterThanOrEqual(SESSION_TIMEOUT_MS);
    expect(await refusalOf(other.heartbeat())).toBe('UNKNOWN_MEMBER_ID');
    await one.join();
    expect(one.members).toEqual([one.id]);
  },
  async 'a member that does not join again in time is left out'(engine) {
    const one = await stable(engine);
    const other = await Member.join(engine);
    expect(other.members).toEqual([other.id]);
    expect(other.generation).toBe(2);
    expect(await refusalOf(one.heartbeat())).toBe('UNKNOWN_MEMBER_ID');
  },
  async 'a follower that joins again for no reason is in the same generation as before'(engine) {
    const [leader, follower] = await stablePair(engine);
    await follower.join();
    expect(follower.generation).toBe(2);
    expect(follower.members).toEqual([]);
    expect(await refusalOf(leader.heartbeat())).toBe('nothing');
    expect(await follower.sync([])).toBe(`for ${follower.id}`);
  },
  async 'a leader that joins again has all join again'(engine) {
    const [leader, follower] = await stablePair(engine);
    const joining = leader.join();
    expect(await firstRefusalOf(engine, follower)).toBe('REBALANCE_IN_PROGRESS');
    await Promise.all([follower.join(), joining]);
    expect(leader.generation).toBe(3);
  },
  async 'a follower that joins again before the assignment is in the same generation as before'(engine) {
    const [one, other] = await pair(engine);
    const [leader, follower] = one.leaderId === one.id ? [one, other] : [other, one];
    await follower.join();
    expect(follower.generation).toBe(2);
    expect(await refusalOf(leader.heartbeat())).toBe('nothing');
  },
  async 'a member that leaves has the others join again, without it'(engine) {
    const [leader, follower] = await stablePair(engine);
    await follower.leave();
    expect(await refusalOf(leader.heartbeat())).toBe('REBALANCE_IN_PROGRESS');
    await leader.join();
    expect(leader.members).toEqual([leader.id]);
    expect(leader.generation).toBe(3);
  },
  async 'a leader that leaves is followed by another one'(engine) {
    const [leader, follower] = await stablePair(engine);
    await leader.leave();
    await follower.join();
    expect(follower.leaderId).toBe(follower.id);
  },
  async 'a group without members keeps its offsets, and counts on'(engine) {
    const one = await stable(engine);
    await one.commit(5);
    await one.leave();
    const other = await Member.join(engine);
    expect(other.generation).toBeGreaterThan(1);
    expect(await committed(engine, other.broker)).toEqual(['5', '-1']);
  },
  async 'a group that was forgotten has no offsets, and begins with generation 1 again'(engine) {
    const one = await stable(engine);
    await one.commit(5);
    await one.leave();
    await engine.forgetGroup();
    expect(await committed(engine, one.broker)).toEqual(['-1', '-1']);
    const other = await Member.join(engine);
    expect(other.generation).toBe(1);
    expect(other.id).not.toBe(one.id);
  },
  async 'a committed offset may go back'(engine) {
    const member = await stable(engine);
    await member.commit(9);
    await member.commit(3);
    expect(await committed(engine, member.broker)).toEqual(['3', '-1']);
  },
  async 'metadata that are committed are kept, until an offset is committed with others or none'(engine) {
    const member = await stable(engine);
    expect(await committedMetadata(engine, member.broker)).toBe('');
    await member.commit(3, 'one');
    expect(await committedMetadata(engine, member.broker)).toBe('one');
    await member.commit(3, 'another');
    expect(await committedMetadata(engine, member.broker)).toBe('another');
    await member.commit(4);
    expect(await committedMetadata(engine, member.broker)).toBe('');
  },
  async 'the members of a group are described, and there are none of a group that nobody knows'(engine) {
    const broker = await engine.connect();
    expect(await membersOf(engine, broker)).toEqual([]);
    const [leader, follower] = await stablePair(engine);
    expect(await membersOf(engine, broker)).toEqual([leader.id, follower.id].sort());
  },
};

/** What we believe about logs. */
const LOGS: Readonly<Record<string, Contract>> = {
  async 'a record is fetched as it was sent, with its offset, its time and the epoch of its leader'(engine) {
    const broker = await engine.connect();
    await send(engine, broker, 0, ['one'], { kind: 'events' });
    const [record] = await fetched(engine, broker, 0, 0);
    expect(record?.offset).toBe('0');
    expect(String(record?.value)).toBe('one');
    expect(String(record?.headers['kind'])).toBe('events');
    expect(Number(record?.timestamp)).toBeGreaterThan(Date.UTC(2020));
    expect(record?.batchContext.partitionLeaderEpoch).toBe(0);
  },
  async 'a fetch at the end of the log waits, and returns nothing'(engine) {
    const broker = await engine.connect();
    await send(engine, broker, 0, ['one']);
    expect(await fetched(engine, broker, 0, 1)).toEqual([]);
  },
  async 'a fetch that waits returns the record that comes meanwhile'(engine) {
    const [broker, producer] = [await engine.connect(), await engine.connect()];
    const waiting = fetched(engine, broker, 0, 0, { maxWaitTime: 5_000 });
    await engine.sleep(300);
    await send(engine, producer, 0, ['one']);
    expect((await waiting).map(({ value }) => String(value))).toEqual(['one']);
  },
  async 'a fetch that was under way when the group rebalanced is still delivered'(engine) {
    const one = await stable(engine);
    const [broker, producer] = [await engine.connect(), await engine.connect()];
    const waiting = fetched(engine, broker, 0, 0, { maxWaitTime: 5_000 });
    await engine.sleep(300);
    const joining = Member.join(engine);
    await engine.sleep(300);
    await send(engine, producer, 0, ['one']);
    expect(await waiting).toHaveLength(1);
    await Promise.all([one.join(), joining]);
  },
  async 'a fetch beyond the end of the log is out of range'(engine) {
    const broker = await engine.connect();
    await send(engine, broker, 0, ['one']);
    expect(await refusalOf(fetched(engine, broker, 0, 2))).toBe('OFFSET_OUT_OF_RANGE');
  },
  async 'an error of a fetch names the partition that is out of range'(engine) {
    const broker = await engine.connect();
    const error = await fetched(engine, broker, 1, 5).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: 'KafkaJSOffsetOutOfRange', topic: engine.topic, partition: 1 });
  },
  async 'retention moves the beginning of the log; a fetch before it is out of range'(engine) {
    const broker = await engine.connect();
    for (const value of ['one', 'two', 'three']) await send(engine, broker, 0, [value]);
    await engine.deleteRecords(0, 2);
    expect(await bounds(engine, broker, 0)).toEqual(['2', '3']);
    expect(await refusalOf(fetched(engine, broker, 0, 1))).toBe('OFFSET_OUT_OF_RANGE');
    expect((await fetched(engine, broker, 0, 2)).map(({ offset }) => offset)).toEqual(['2']);
  },
  async 'a fetch returns a record that is larger than the fetch may be'(engine) {
    const broker = await engine.connect();
    await send(engine, broker, 0, ['long'.repeat(1_000)]);
    expect(await fetched(engine, broker, 0, 0, { maxBytes: 1 })).toHaveLength(1);
  },
  async 'a fetch of a partition that nobody knows is refused'(engine) {
    const broker = await engine.connect();
    expect(await refusalOf(fetched(engine, broker, 7, 0))).toBe('UNKNOWN_TOPIC_OR_PARTITION');
  },
  async 'records of a partition are fetched beside one that is out of range, where errors are kept'(engine) {
    const broker = await engine.connect();
    await send(engine, broker, 0, ['one']);
    const { responses } = await broker.fetch(fetchOf(engine, [0, 1], 0, { keepErrors: true, offsets: [0, 9] }));
    const partitions = responses.flatMap((response) => response.partitions);
    const found = partitions.map(({ partition, errorCode, messages }) => [partition, errorCode, messages.length]);
    expect(found.toSorted()).toEqual([
      [0, 0, 1],
      [1, 1, 0],
    ]);
  },
  async 'the offsets of a log are those of its first and its next record'(engine) {
    const broker = await engine.connect();
    expect(await bounds(engine, broker, 0)).toEqual(['0', '0']);
    await send(engine, broker, 0, ['one', 'two']);
    expect(await bounds(engine, broker, 0)).toEqual(['0', '2']);
  },
  async 'the offsets of a partition that nobody knows are refused'(engine) {
    const broker = await engine.connect();
    expect(await refusalOf(bounds(engine, broker, 7))).toBe('UNKNOWN_TOPIC_OR_PARTITION');
  },
  async 'a batch is acknowledged with the offset of its first record'(engine) {
    const broker = await engine.connect();
    expect(await send(engine, broker, 0, ['one', 'two'])).toMatchObject([{ partition: 0, baseOffset: '0' }]);
    expect(await send(engine, broker, 0, ['three'])).toMatchObject([{ partition: 0, baseOffset: '2' }]);
  },
  async 'records that are sent twice are there twice'(engine) {
    const broker = await engine.connect();
    for (let attempt = 0; attempt < 2; attempt += 1) await send(engine, broker, 0, ['one']);
    expect(await bounds(engine, broker, 0)).toEqual(['0', '2']);
  },
  async 'a batch that is too large is refused, and nothing of it is stored'(engine) {
    const broker = await engine.connect();
    expect(await refusalOf(send(engine, broker, 0, ['small', 'x'.repeat(2_000_000)]))).toBe('MESSAGE_TOO_LARGE');
    expect(await bounds(engine, broker, 0)).toEqual(['0', '0']);
  },
  async 'a batch for a partition that nobody knows is refused; another one of its request is taken'(engine) {
    const broker = await engine.connect();
    const messages = [{ value: Buffer.from('one'), headers: {} }];
    const topicData = [
      {
        topic: engine.topic,
        partitions: [
          { partition: 7, messages },
          { partition: 0, messages },
        ],
      },
    ];
    const { topics } = await broker.produce({ acks: -1, timeout: 5_000, keepErrors: true, topicData });
    const results = topics.flatMap(({ partitions }) => partitions).map((one) => [one.partition, one.errorCode]);
    expect(results.toSorted()).toEqual([
      [0, 0],
      [7, 3],
    ]);
    expect(await bounds(engine, broker, 0)).toEqual(['0', '1']);
  },
  async 'the metadata of a topic name its partitions and their leaders'(engine) {
    const broker = await engine.connect();
    const { topicMetadata, brokers } = await broker.metadata([engine.topic]);
    const partitions = topicMetadata.flatMap((topic) => topic.partitionMetadata);
    expect(partitions.map(({ partitionId }) => partitionId).sort()).toEqual([0, 1]);
    for (const { leader } of partitions) expect(brokers.map(({ nodeId }) => nodeId)).toContain(leader);
  },
  async 'the metadata of a topic that nobody knows are refused'(engine) {
    const broker = await engine.connect();
    expect(await refusalOf(broker.metadata(['nobody.knows.it']))).toBe('UNKNOWN_TOPIC_OR_PARTITION');
  },
  async 'a topic that exists is not created again'(engine) {
    const broker = await engine.connect();
    const creating = broker.createTopics({ topics: [{ topic: engine.topic, numPartitions: 2 }] });
    const { errors } = await creating.then(
      () => ({ errors: [] }),
      (error) => error,
    );
    expect(errors).toMatchObject([{ type: 'TOPIC_ALREADY_EXISTS' }]);
  },
};

export const KAFKA_CONTRACTS: Readonly<Record<string, Contract>> = { ...GROUPS, ...LOGS };

type Joined = Awaited<ReturnType<BrokerConnection['joinGroup']>>;

/** A member of the group, with a connection of its own. */
class Member {
  readonly #engine: KafkaEngine;
  readonly broker: BrokerConnection;
  joined: Joined;

  constructor(engine: KafkaEngine, broker: BrokerConnection, joined: Joined) {
    this.#engine = engine;
    this.broker = broker;
    this.joined = joined;
  }

  static async join(engine: KafkaEngine): Promise<Member> {
    const broker = await engine.connect();
    const unknown = { generationId: -1, leaderId: '', memberId: '', members: [] };
    const member = new Member(engine, broker, unknown);
    await member.join();
    return member;
  }

  get id(): string {
    return this.joined.memberId;
  }

  get generation(): number {
    return this.joined.generationId;
  }

  get leaderId(): string {
    return this.joined.leaderId;
  }

  get members(): readonly string[] {
    return this.joined.members.map(({ memberId }) => memberId);
  }

  async join(): Promise<void> {
    const { topic, groupId } = this.#engine;
    const subscription = { version: 1, topics: [topic], userData: Buffer.alloc(0) };
    const metadata = AssignerProtocol.MemberMetadata.encode(subscription);
    this.joined = await this.broker.joinGroup({
      ...{ groupId, memberId: this.id, sessionTimeout: SESSION_TIMEOUT_MS, rebalanceTimeout: REBALANCE_TIMEOUT_MS },
      groupProtocols: [{ name: 'contract', metadata }],
    });
  }

  /** @param members those that it assigns something to, as the leader */
  async sync(members: readonly Member[]): Promise<string> {
    const { memberAssignment } = await this.broker.syncGroup({
      ...this.#who,
      generationId: this.generation,
      groupAssignment: members.map(({ id }) => ({ memberId: id, memberAssignment: Buffer.from(`for ${id}`) })),
    });
    return String(memberAssignment);
  }

  async heartbeat(): Promise<unknown> {
    return await this.broker.heartbeat({ ...this.#who, groupGenerationId: this.generation });
  }

  async commit(offset: number, metadata?: string): Promise<unknown> {
    const { topic } = this.#engine;
    const partition = { partition: 0, offset: String(offset), ...(metadata === undefined ? {} : { metadata }) };
    const topics = [{ topic, partitions: [partition] }];
    return await this.broker.offsetCommit({ ...this.#who, groupGenerationId: this.generation, topics });
  }

  async leave(): Promise<unknown> {
    return await this.broker.leaveGroup(this.#who);
  }

  get #who(): { readonly groupId: string; readonly memberId: string } {
    return { groupId: this.#engine.groupId, memberId: this.id };
  }
}

/** Has a member send heartbeats until one is refused, and returns how. */
async function firstRefusalOf(engine: KafkaEngine, member: Member): Promise<string> {
  for (;;) {
    const refusal = await refusalOf(member.heartbeat());
    if (refusal !== 'nothing') return refusal;
    await engine.sleep(50);
  }
}

/** Returns the only member of a group, with its assignment. */
async function stable(engine: KafkaEngine): Promise<Member> {
  const member = await Member.join(engine);
  await member.sync([member]);
  return member;
}

/** Returns two members of the same generation, the second one. */
async function pair(engine: KafkaEngine): Promise<[Member, Member]> {
  const one = await stable(engine);
  const joining = Member.join(engine);
  expect(await firstRefusalOf(engine, one)).toBe('REBALANCE_IN_PROGRESS');
  await one.join();
  return [one, await joining];
}

/** Returns the leader and the follower of a group, with their assignments. */
async function stablePair(engine: KafkaEngine): Promise<[Member, Member]> {
  const [one, other] = await pair(engine);
  await Promise.all([one.sync([one, other]), other.sync([one, other])]);
  return one.leaderId === one.id ? [one, other] : [other, one];
}

async function membersOf({ groupId }: KafkaEngine, broker: BrokerConnection): Promise<string[]> {
  const { groups } = await broker.describeGroups({ groupIds: [groupId] });
  return groups.flatMap(({ members }) => members.map(({ memberId }) => memberId)).sort();
}

async function committed({ topic, groupId }: KafkaEngine, broker: BrokerConnection): Promise<string[]> {
  const topics = [{ topic, partitions: [{ partition: 0 }, { partition: 1 }] }];
  const { responses } = await broker.offsetFetch({ groupId, topics });
  return responses.flatMap(({ partitions }) => partitions.map(({ offset }) => offset));
}

/** Returns what was committed with the offset of the first partition. */
async function committedMetadata({ topic, groupId }: KafkaEngine, broker: BrokerConnection) {
  const { responses } = await broker.offsetFetch({ groupId, topics: [{ topic, partitions: [{ partition: 0 }] }] });
  return responses[0]?.partitions[0]?.metadata;
}

async function send(
  { topic }: KafkaEngine,
  broker: BrokerConnection,
  partition: number,
  values: readonly string[],
  headers: Readonly<Record<string, string>> = {},
) {
  const messages = values.map((value) => ({ value: Buffer.from(value), headers, timestamp: Date.now() }));
  const topicData = [{ topic, partitions: [{ partition, messages }] }];
  const { topics } = await broker.produce({ acks: -1, timeout: 5_000, topicData });
  return topics.flatMap(({ partitions }) => partitions);
}

interface FetchOptions {
  readonly maxWaitTime?: number;
  readonly maxBytes?: number;
  readonly keepErrors?: boolean;
  /** The offset of each partition. Default: the same of all. */
  readonly offsets?: readonly number[];
}

function fetchOf(
  { topic }: KafkaEngine,
  partitions: readonly number[],
  offset: number,
  { maxWaitTime = FETCH_WAIT_MS, maxBytes = 1_000_000, keepErrors = false, offsets = [] }: FetchOptions,
): Parameters<BrokerConnection['fetch']>[0] {
  const wanted = partitions.map((partition, index) => {
    return { partition, fetchOffset: String(offsets[index] ?? offset), maxBytes };
  });
  return { isolationLevel: 1, minBytes: 1, maxWaitTime, maxBytes, keepErrors, topics: [{ topic, partitions: wanted }] };
}

async function fetched(
  engine: KafkaEngine,
  broker: BrokerConnection,
  partition: number,
  offset: number,
  options: FetchOptions = {},
) {
  const { responses } = await broker.fetch(fetchOf(engine, [partition], offset, options));
  return responses.flatMap(({ partitions }) => partitions.flatMap(({ messages }) => messages));
}

/** Returns the offsets of the first record of a log, and of the next. */
async function bounds({ topic }: KafkaEngine, broker: BrokerConnection, partition: number): Promise<string[]> {
  const offsets: string[] = [];
  for (const timestamp of [-2, -1]) {
    const topics = [{ topic, partitions: [{ partition, timestamp }] }];
    const { responses } = await broker.listOffsets({ isolationLevel: 1, topics });
    offsets.push(...responses.flatMap(({ partitions }) => partitions.map((found) => found.offset)));
  }
  return offsets;
}
