// What the console shows and keeps besides events: views, segments, names, fast properties, keys, dead letters, the pipeline.

export { registerAudits } from './audits/audits-route.ts';
export { consolePaths, registerConsole } from './console/console-route.ts';
export { registerDeadLetters } from './dead-letters/dead-letters-route.ts';
export { registerExample } from './example/example-route.ts';
export { registerFastProperties } from './fast/fast-properties-route.ts';
export { PropertyReads } from './fast/property-reads.ts';
export { registerIdentitySettings } from './identities/identity-settings-route.ts';
export { registerKeys } from './keys/keys-route.ts';
export { Levelling, type Place } from './levelling/levelling.ts';
export { registerNames } from './names/names-route.ts';
export { registerPipeline } from './pipeline/pipeline-route.ts';
export { registerSegments, segmentsAreOff } from './segments/segments-route.ts';
export { NAME_CHARACTERS_MAX, type View, viewsOf } from './views/view.ts';
export { viewQuery } from './views/view-query.ts';
export { Views } from './views/views.ts';
export { registerViews } from './views/views-route.ts';
