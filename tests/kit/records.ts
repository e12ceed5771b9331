/** A record of GET /events. */
export interface EventRecord {
  readonly uuid: string;
  readonly type: string;
  readonly event: string;
  readonly userId: string | null;
  readonly groupId: string | null;
  readonly anonymousId: string | null;
  readonly instanceId: string | null;
  readonly properties: Record<string, unknown>;
  readonly context: Record<string, unknown>;
  readonly traits: Record<string, unknown>;
  readonly timestamp: string;
  readonly receivedAt: string;
}

/** The response of GET /events. */
export interface EventPage {
  readonly limit: number;
  readonly offset: number;
  readonly total: number | null;
  readonly results: readonly EventRecord[];
  readonly nextCursor: string | null;
}

/** The response of GET /users/{id} and GET /organizations/{id}. */
export interface EntityRecord {
  readonly foreignId?: string;
  readonly foreignUserGroupId?: string;
  readonly properties: Record<string, unknown>;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}
