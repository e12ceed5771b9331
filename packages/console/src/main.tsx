import { render } from 'preact';
import { App } from './app.tsx';
import { followAddress } from './route.ts';
import { takeLink } from './views/link.ts';

followAddress(takeLink);
render(<App />, document.body);
