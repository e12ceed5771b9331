import {
  LegendDisplayMode,
  LegendPlacement,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

/** A dashboard, as its file in this folder describes it. */
export interface DashboardDescription {
  /** Its file in `deploy/grafana`, without `.json`. */
  readonly name: string;
  readonly title: string;
  readonly rows: readonly { readonly title: string; readonly panels: readonly PanelDescription[] }[];
}

/** A chart over time. */
export interface PanelDescription {
  readonly title: string;
  /** What it shows beyond its title, and what is bad. */
  readonly description?: string;
  /** The unit of the values. */
  readonly unit: Unit;
  readonly queries: readonly PanelQuery[];
}

export interface PanelQuery {
  readonly expr: string;
  /** A template with labels: `{{topic}}`. */
  readonly legend: string;
}

/** Grafana's identifiers of units. */
export type Unit = 's' | 'bytes' | 'Bps' | 'percentunit' | 'reqps' | 'cps' | 'short';

const PANELS_PER_ROW = 3;
const GRID_WIDTH = 24;
const PANEL_HEIGHT = 8;

/** The data source that the user of a dashboard chooses, which is a Prometheus. */
const DATASOURCE = { type: 'prometheus', uid: `\${datasource}` };

/** Builds the model of a dashboard, as Grafana imports it. */
export function buildDashboard({ name, title, rows }: DashboardDescription): Dashboard {
  const dashboard = new DashboardBuilder(title)
    .uid(`sluice-${name}`)
    .tags(['sluice'])
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .timezone('browser')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'));
  let id = 0;
  for (const row of rows) {
    dashboard.withRow(new RowBuilder(row.title));
    for (const panel of row.panels) {
      id += 1;
      dashboard.withPanel(buildPanel(panel).id(id));
    }
  }
  return dashboard.build();
}

function buildPanel({ title, description = '', unit, queries }: PanelDescription): PanelBuilder {
  const panel = new PanelBuilder()
    .title(title)
    .description(description)
    .unit(unit)
    .min(0)
    .span(GRID_WIDTH / PANELS_PER_ROW)
    .height(PANEL_HEIGHT)
    .fillOpacity(10)
    .datasource(DATASOURCE)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi));
  for (const [index, { expr, legend }] of queries.entries()) {
    const refId = String.fromCharCode('A'.charCodeAt(0) + index);
    panel.withTarget(new DataqueryBuilder().refId(refId).expr(expr).legendFormat(legend).range());
  }
  return panel;
}
