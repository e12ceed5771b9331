import type { VirtualTime } from '../world/virtual-time.ts';

/** How long a coordinator waits for more members when a group begins, in milliseconds. */
const FIRST_JOIN_DELAY_MS = 500;

export interface JoinRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly sessionTimeout: number;
  readonly rebalanceTimeout: number;
  readonly groupProtocols: readonly { readonly name: string; readonly metadata: Buffer }[];
}

export interface JoinResponse {
  readonly throttleTime: number;
  readonly errorCode: number;
  readonly generationId: number;
  readonly groupProtocol: string;
  readonly leaderId: string;
  readonly memberId: string;
  readonly members: readonly { readonly memberId: string; readonly memberMetadata: Buffer }[];
}

interface Member {
  readonly id: string;
  request: JoinRequest;
  /** Answers its join, while it waits for the others. */
  joining: PromiseWithResolvers<JoinResponse> | undefined;
  syncing: PromiseWithResolvers<Buffer> | undefined;
  stopTimer: () => void;
}

/** What a coordinator refuses with: the type of Kafka's error. */
export class GroupError extends Error {
  override readonly name = 'GroupError';
  readonly type: 'UNKNOWN_MEMBER_ID' | 'ILLEGAL_GENERATION' | 'REBALANCE_IN_PROGRESS';

  constructor(type: GroupError['type']) {
    super(type);
    this.type = type;
  }
}

type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable';

export interface CommittedOffset {
  /** The name of the topic and partition. */
  readonly name: string;
  readonly offset: number;
  readonly metadata: string;
}

/** A consumer group as its coordinator keeps it: members, generation, assignments and committed offsets. */
export class ConsumerGroup {
  readonly #time: VirtualTime;
  readonly #members = new Map<string, Member>();
  /** The committed offsets, by topic and partition. */
  readonly offsets = new Map<string, number>();
  /** What was committed with them. */
  readonly metadata = new Map<string, string>();
  #state: GroupState = 'Empty';
  #generation = 0;
  #joined = 0;
  #assignments = new Map<string, Buffer>();
  #stopRebalance = () => {};

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  get state(): GroupState {
    return this.#state;
  }

  get memberIds(): readonly string[] {
    return [...this.#members.keys()];
  }

  /** @throws {GroupError} */
  join(request: JoinRequest): Promise<JoinResponse> {
    if (request.memberId !== '' && !this.#members.has(request.memberId)) throw new GroupError('UNKNOWN_MEMBER_ID');
    this.#joined += 1;
    const id = request.memberId || `member-${String(this.#joined).padStart(4, '0')}`;
    const known = this.#members.get(id);
    if (known && this.#isUnchanged(known, request)) {
      this.#watch(known);
      return Promise.resolve(this.#responseTo(known));
    }
    const member = known ?? this.#add(id, request);
    member.request = request;
    member.joining ??= Promise.withResolvers();
    member.syncing?.reject(new GroupError('REBALANCE_IN_PROGRESS'));
    member.syncing = undefined;
    this.#watch(member);
    const response = member.joining.promise;
    if (this.#state !== 'PreparingRebalance') this.#prepare(this.#state === 'Empty' ? FIRST_JOIN_DELAY_MS : undefined);
    else this.#completeIfAllJoined();
    return response;
  }

  /** @throws {GroupError} */
  async sync(memberId: string, generation: number, assignments: ReadonlyMap<string, Buffer>): Promise<Buffer> {
    const member = this.#require(memberId, generation);
    if (this.#state === 'PreparingRebalance') throw new GroupError('REBALANCE_IN_PROGRESS');
    this.#watch(member);
    if (this.#state === 'Stable') return this.#assignments.get(memberId) ?? Buffer.alloc(0);
    member.syncing ??= Promise.withResolvers();
    const waiting = member.syncing.promise;
    if (memberId === this.#leaderId()) {
      this.#assignments = new Map(assignments);
      this.#state = 'Stable';
      for (const other of this.#members.values()) {
        other.syncing?.resolve(this.#assignments.get(other.id) ?? Buffer.alloc(0));
        other.syncing = undefined;
      }
    }
    return await waiting;
  }

  /** @throws {GroupError} */
  heartbeat(memberId: string, generation: number): void {
    const member = this.#require(memberId, generation);
    this.#watch(member);
    if (this.#state === 'PreparingRebalance') throw new GroupError('REBALANCE_IN_PROGRESS');
  }

  /** Returns what the leader of the generation has assigned to a member, as it has encoded it. */
  assignmentOf(memberId: string): Buffer | undefined {
    return this.#assignments.get(memberId);
  }

  /** @throws {GroupError} */
  commit(memberId: string, generation: number, offsets: readonly CommittedOffset[]): void {
    const member = this.#require(memberId, generation);
    if (this.#state === 'CompletingRebalance') throw new GroupError('REBALANCE_IN_PROGRESS');
    this.#watch(member);
    for (const { name, offset, metadata } of offsets) {
      this.offsets.set(name, offset);
      this.metadata.set(name, metadata);
    }
  }

  leave(memberId: string): void {
    const member = this.#members.get(memberId);
    if (member) this.#remove(member);
  }

  /** Has all members join anew. */
  rebalance(): void {
    if (this.#state === 'Stable' || this.#state === 'CompletingRebalance') this.#prepare();
  }

  /** Kafka has forgotten the group: members, generation and offsets. */
  forget(): void {
    this.#stopRebalance();
    for (const member of this.#members.values()) {
      member.stopTimer();
      member.joining?.reject(new GroupError('UNKNOWN_MEMBER_ID'));
      member.syncing?.reject(new GroupError('UNKNOWN_MEMBER_ID'));
    }
    this.#members.clear();
    this.offsets.clear();
    this.metadata.clear();
    this.#assignments.clear();
    this.#state = 'Empty';
    this.#generation = 0;
  }

  #add(id: string, request: JoinRequest): Member {
    const member: Member = { id, request, joining: undefined, syncing: undefined, stopTimer: () => {} };
    this.#members.set(id, member);
    return member;
  }

  #require(memberId: string, generation: number): Member {
    const member = this.#members.get(memberId);
    if (!member) throw new GroupError('UNKNOWN_MEMBER_ID');
    if (generation !== this.#generation) throw new GroupError('ILLEGAL_GENERATION');
    return member;
  }

  /** A member that is not heard of for its session timeout is removed, unless it waits for a join. */
  #watch(member: Member): void {
    member.stopTimer();
    member.stopTimer = this.#time.after(member.request.sessionTimeout, () => {
      if (member.joining || member.syncing) this.#watch(member);
      else this.#remove(member);
    });
  }

  #remove(member: Member): void {
    member.stopTimer();
    member.joining?.reject(new GroupError('UNKNOWN_MEMBER_ID'));
    member.syncing?.reject(new GroupError('UNKNOWN_MEMBER_ID'));
    this.#members.delete(member.id);
    if (this.#state === 'PreparingRebalance') this.#completeIfAllJoined();
    else this.#prepare();
  }

  #prepare(delayMs?: number): void {
    this.#state = 'PreparingRebalance';
    for (const member of this.#members.values()) {
      member.syncing?.reject(new GroupError('REBALANCE_IN_PROGRESS'));
      member.syncing = undefined;
    }
    const timeoutMs = Math.max(0, ...[...this.#members.values()].map(({ request }) => request.rebalanceTimeout));
    this.#stopRebalance();
    this.#stopRebalance = this.#time.after(delayMs ?? timeoutMs, () => this.#complete());
    if (delayMs === undefined) this.#completeIfAllJoined();
  }

  #completeIfAllJoined(): void {
    if (this.#generation > 0 && [...this.#members.values()].every(({ joining }) => joining)) this.#complete();
  }

  #complete(): void {
    this.#stopRebalance();
    for (const member of [...this.#members.values()].filter(({ joining }) => !joining)) {
      member.stopTimer();
      this.#members.delete(member.id);
    }
    this.#generation += 1;
    this.#assignments.clear();
    const members = [...this.#members.values()];
    this.#state = members.length === 0 ? 'Empty' : 'CompletingRebalance';
    for (const member of members) {
      member.joining?.resolve(this.#responseTo(member));
      member.joining = undefined;
      this.#watch(member);
    }
  }

  /**
   * A member that joins again as it was, such as one that did not get the response to its join, is told the generation that
   * there is. Only a leader that joins again has all others join again, once they have their assignments.
   */
  #isUnchanged(member: Member, request: JoinRequest): boolean {
    const isSettled = this.#state === 'Stable' ? member.id !== this.#leaderId() : this.#state === 'CompletingRebalance';
    const [before, now] = [member.request.groupProtocols, request.groupProtocols];
    const isSame = now.every(({ metadata }, index) => before[index]?.metadata.equals(metadata));
    return isSettled && isSame && now.length === before.length;
  }

  #responseTo({ id: memberId, request }: Member): JoinResponse {
    const leaderId = this.#leaderId() ?? '';
    const members = [...this.#members.values()].map((member) => described(member.id, member.request));
    return {
      ...{ throttleTime: 0, errorCode: 0, generationId: this.#generation, leaderId, memberId },
      groupProtocol: request.groupProtocols[0]?.name ?? '',
      members: memberId === leaderId ? members : [],
    };
  }

  #leaderId(): string | undefined {
    return this.#members.keys().next().value;
  }
}

function described(memberId: string, { groupProtocols }: JoinRequest): JoinResponse['members'][number] {
  return { memberId, memberMetadata: groupProtocols[0]?.metadata ?? Buffer.alloc(0) };
}
