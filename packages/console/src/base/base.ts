// What every other room is built on: requests to query-api, the address of the page, settings, and how names, numbers
// and times are read and written.

export * from './api.ts';
export * from './dates.ts';
export * from './format.ts';
export * from './names.ts';
export * from './patience.ts';
export * from './records.ts';
export * from './route.ts';
export * from './settings.ts';
export * from './statements.ts';
export * from './zoned-time.ts';
