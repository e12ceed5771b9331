import { Counter, Gauge, type Registry } from 'prom-client';

/** Why numbers are not judged: they cannot be read, or the pipeline is late. */
export type TroubleKind = 'late' | 'failed';

const OUTCOMES = ['evaluated', 'failed', 'late'] as const;

/** The metrics of alerts. No label names one: there may be any number of them. */
export class AlertMetrics {
  readonly evaluations: Counter<'outcome'>;
  /** What keeps alerts of this instance from being evaluated, by their ids. */
  readonly #troubles = new Map<string, TroubleKind | undefined>();

  /** Declares them in a registry. */
  constructor(registry: Registry) {
    const registers = [registry];
    const troubles = this.#troubles;
    this.evaluations = new Counter({
      name: 'sluice_alert_evaluations_total',
      help: 'Evaluations of alerts, by outcome: evaluated, failed, or late, since the pipeline was.',
      labelNames: ['outcome'],
      registers,
    });
    for (const outcome of OUTCOMES) this.evaluations.inc({ outcome }, 0);
    new Gauge({
      name: 'sluice_alerts_failing',
      help: 'Alerts of this instance whose number could not be read last.',
      registers,
      collect() {
        this.set([...troubles.values()].filter((trouble) => trouble === 'failed').length);
      },
    });
  }

  note(alert: string, trouble: TroubleKind | undefined): void {
    this.#troubles.set(alert, trouble);
  }

  forget(alert: string): void {
    this.#troubles.delete(alert);
  }
}
