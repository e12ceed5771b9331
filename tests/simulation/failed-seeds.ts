/** A schedule that has failed once. `npm test` runs it again each time. */
export interface FailedSeed {
  /** The kind of simulation, as `npm run simulate -- --only` calls it. */
  readonly kind: string;
  readonly seed: number;
  /** What went wrong, and what mended it. */
  readonly found: string;
}

/** A seed means another schedule once the simulator draws differently: remove those that no longer show what they found. */
export const FAILED_SEEDS: readonly FailedSeed[] = [
  {
    kind: 'writer',
    seed: 4488,
    found: 'a commit that arrives late sets a later one back: writers commit again once a minute',
  },
  {
    kind: 'writer',
    seed: 302_030,
    found:
      'a take-over whose assignment had ended recorded its epoch above that of the owners; one of these could then neither record a halt nor notice that its epoch was over',
  },
  {
    kind: 'writer',
    seed: 460_555,
    found:
      'a member that joined again got the generation that it had, and an insert of its earlier assignment arrived late: failed pieces are ended before anything else is stored',
  },
  {
    kind: 'writer',
    seed: 681_014,
    found:
      'a join that failed was not tried again while Kafka still knew the member: kafkajs tries until it has joined (patches)',
  },
  {
    kind: 'writer',
    seed: 212_322_597,
    found:
      'between the two tables of deletions, another batch dropped a merge that the deletion needed: one of them alone says what is settled (0119)',
  },
  {
    kind: 'writer',
    seed: 421_198_107,
    found: 'a deletion was settled before that of a merged user, which is older and ends a link, was stored (0119)',
  },
  {
    kind: 'writer',
    seed: 361_164_178,
    found:
      'while kafkajs read metadata, its connections to all brokers broke: it forgot the last of them, and the consumer ended with a TypeError (patches)',
  },
];
