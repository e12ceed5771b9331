import { withAdmin } from '@sluice/shared/kafka/topics';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Kafka, TopicPartitionOffsetAndMetadata } from 'kafkajs';

export interface ForeignCommitsOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly topics: readonly string[];
  /** Whether offsets with this metadata were committed by writers of this database. */
  readonly isOwn: (databaseId: string) => boolean;
}

/**
 * Notices that another database is fed by the group of this one: each would get a part of the messages. The offsets carry
 * the id of the database that has them. Those of a database that was lost carry another id as well, and do not grow.
 */
export class ForeignCommits {
  readonly #options: ForeignCommitsOptions;
  #before = new Map<string, bigint>();

  constructor(options: ForeignCommitsOptions) {
    this.#options = options;
  }

  /**
   * Returns the id of another database that has stored messages since the last look, if there is one, and whether Kafka has
   * lost the metadata of an offset.
   *
   * @param own what this writer has committed last, with metadata
   * @throws kafkajs's errors
   */
  async look(
    own: readonly TopicPartitionOffsetAndMetadata[],
  ): Promise<{ readonly foreign: string | undefined; readonly losesMetadata: boolean }> {
    const { kafka, groupId, topics, isOwn } = this.#options;
    const committed = await withAdmin(kafka, (admin) => admin.fetchOffsets({ groupId, topics: [...topics] }));
    const foreign = committed.flatMap(({ topic, partitions }) =>
      partitions.flatMap(({ partition, offset, metadata }) => {
        // An older version commits no metadata.
        if (!metadata || isOwn(metadata)) return [];
        return [{ name: nameOf({ topic, partition }), offset: BigInt(offset), id: metadata }];
      }),
    );
    const growing = foreign.find(({ name, offset }) => offset > (this.#before.get(name) ?? offset));
    this.#before = new Map(foreign.map(({ name, offset }) => [name, offset]));
    const ofOwn = new Map(own.map(({ offset, ...partition }) => [nameOf(partition), offset]));
    const losesMetadata = committed.some(({ topic, partitions }) =>
      partitions.some(
        ({ partition, offset, metadata }) => !metadata && ofOwn.get(nameOf({ topic, partition })) === offset,
      ),
    );
    return { foreign: growing?.id, losesMetadata };
  }
}
