import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type Identity, Setting } from '../../store/store.ts';
import { FastProperties } from '../fast/fast-properties.ts';
import { IDENTITY_SETTINGS } from '../identities/identity-settings-route.ts';
import { Namings } from '../names/namings.ts';
import { Segments } from '../segments/segments.ts';
import { ConsoleDocuments } from './console-documents.ts';
import { DocumentOperations } from './document-operations.ts';
import { LinkKeys } from './link-keys.ts';
import { DASHBOARDS_MAX, type Dashboard, LINKS_MAX, type Link, VIEWS_MAX, type View } from './view.ts';

/** What the console keeps for all workspaces: views, dashboards, links, segments, what names people, which properties are fast, and what reads see. */
export class Views {
  readonly views: DocumentOperations<View>;
  readonly dashboards: DocumentOperations<Dashboard>;
  readonly links: DocumentOperations<Link>;
  readonly linkKeys: LinkKeys;
  readonly segments: Segments;
  readonly namings: Namings;
  readonly fastProperties: FastProperties;
  readonly identitySettings: Setting<Identity>;

  /** @param client with the account that stores them */
  constructor(client: ClickHouseClient) {
    const links = new ConsoleDocuments<Link>(client, 'link');
    const limitOf = (singular: string, max: number) => ({ singular, plural: `${singular}s`, max });
    this.views = new DocumentOperations(new ConsoleDocuments<View>(client, 'view'), limitOf('view', VIEWS_MAX));
    this.dashboards = new DocumentOperations(
      new ConsoleDocuments<Dashboard>(client, 'dashboard'),
      limitOf('dashboard', DASHBOARDS_MAX),
    );
    this.links = new DocumentOperations(links, limitOf('link', LINKS_MAX));
    this.linkKeys = new LinkKeys(links);
    this.segments = new Segments(client);
    this.namings = new Namings(client);
    this.fastProperties = new FastProperties(client);
    this.identitySettings = new Setting(client, IDENTITY_SETTINGS, 'The server that stores settings');
  }
}
