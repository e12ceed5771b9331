import { render } from 'preact';
import { App } from './app.tsx';
import { followSettings } from './current-settings.ts';
import { followAddress } from './route.ts';

followAddress();
followSettings();
render(<App />, document.body);
