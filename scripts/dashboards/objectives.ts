import type { DashboardDescription } from './dashboard.ts';

/** The share of a month that may be missed: docs/operate/alerts.md#objectives. */
const BUDGET = 0.001;

/** What is promised, how much of it is missed, and how fast what may be missed is used up. */
export const objectives: DashboardDescription = {
  name: 'objectives',
  title: 'Sluice: objectives',
  rows: [
    {
      title: 'What may be missed: one of a thousand in 30 days',
      panels: [
        {
          title: 'Used up in the last 30 days',
          description: 'At 100 %, the objective is missed. Less history counts as all of it.',
          unit: 'percentunit',
          queries: [
            {
              expr: `sum_over_time(sluice:slo_misses:rate2m[30d]) / sum_over_time(sluice:slo_total:rate2m[30d]) / ${BUDGET}`,
              legend: '{{namespace}} {{slo}}',
            },
          ],
        },
        {
          title: 'How fast it is used up',
          description:
            'At 1, it lasts for 30 days. SluiceObjectiveAtRisk fires above 14.4 over an hour, above 6 over 6 hours, and above 1 over three days.',
          unit: 'short',
          queries: [
            { expr: `sluice:slo_misses:ratio1h / ${BUDGET}`, legend: '{{namespace}} {{slo}}, an hour' },
            { expr: `sluice:slo_misses:ratio6h / ${BUDGET}`, legend: '{{namespace}} {{slo}}, 6 hours' },
            { expr: `sluice:slo_misses:ratio3d / ${BUDGET}`, legend: '{{namespace}} {{slo}}, three days' },
          ],
        },
        {
          title: 'Misses of five minutes',
          unit: 'percentunit',
          queries: [{ expr: 'sluice:slo_misses:ratio5m', legend: '{{namespace}} {{slo}}' }],
        },
      ],
    },
    {
      title: 'Where they come from',
      panels: [
        {
          title: 'Submissions and reads',
          description: 'Misses are responses of 500 or more. Requests that are wrong are none.',
          unit: 'reqps',
          queries: [
            { expr: 'sluice:slo_total:rate2m{slo!="visible"}', legend: '{{namespace}} {{slo}}' },
            { expr: 'sluice:slo_misses:rate2m{slo!="visible"}', legend: '{{namespace}} {{slo}}, missed' },
          ],
        },
        {
          title: 'Rows that are not visible in time',
          description: '1 while the oldest row has waited for more than a minute, or while nobody knows.',
          unit: 'short',
          queries: [{ expr: 'sluice:slo_misses:rate2m{slo="visible"}', legend: '{{namespace}}' }],
        },
      ],
    },
  ],
};
