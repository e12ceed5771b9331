import { render } from 'preact';
import { followAddress, followSettings, restoreKey } from '../base/base.ts';
import { followTime } from '../parts/parts.ts';
import { takeLink } from '../views/views.ts';
import { App } from './app.tsx';

followAddress(takeLink);
followSettings();
followTime();
restoreKey();
// What the page itself has was there for the first moment, and a dashboard behind a link has no header.
document.body.replaceChildren();
render(<App />, document.body);
