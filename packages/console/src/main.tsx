import { render } from 'preact';
import { App } from './app.tsx';
import { followAddress } from './route.ts';

followAddress();
render(<App />, document.body);
