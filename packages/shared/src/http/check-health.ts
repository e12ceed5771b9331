// The health check of the images: exits with 0 when the service of this environment responds on loopback, else with 1.
import { request } from 'node:http';
import { request as requestTls } from 'node:https';

const { PORT = '', TLS_CERT_FILE = '' } = process.env;
// The certificate is for the name by which others reach the service.
const options = { host: '127.0.0.1', port: PORT, path: '/livez', rejectUnauthorized: false };
const check = (TLS_CERT_FILE === '' ? request : requestTls)(options, ({ statusCode }) => {
  process.exit(statusCode === 200 ? 0 : 1);
});
check.on('error', () => process.exit(1)).end();
