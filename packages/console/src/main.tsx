import { render } from 'preact';
import { App } from './app.tsx';
import { followSettings } from './current-settings.ts';
import { followAddress } from './route.ts';
import { takeLink } from './views/link.ts';

followAddress(takeLink);
followSettings();
render(<App />, document.body);
