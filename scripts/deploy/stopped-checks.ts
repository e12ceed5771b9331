import { type KubernetesObject, objectsOf } from './kubernetes-object.ts';

/** The Jobs beside which services must not run, by component. */
const STOPPED: Readonly<Record<string, readonly string[]>> = {
  restore: ['writer'],
  'grow-partitions': ['writer', 'ingest-api'],
};

const COMPONENT = 'app.kubernetes.io/component';
/** Holds KEDA at a number of pods, whatever its minimum is. */
const PAUSED = 'autoscaling.keda.sh/paused-replicas';

/** Returns which pods may run beside a Job that they would disturb: those of a Deployment, or of what scales it. */
export function stoppedErrors(objects: readonly KubernetesObject[]): readonly string[] {
  const held = objects
    .filter(({ kind, metadata }) => kind === 'ScaledObject' && metadata.annotations?.[PAUSED] === '0')
    .map(({ metadata }) => metadata.name);
  const heldTargets = objectsOf(objects, 'ScaledObject')
    .filter(({ name }) => held.includes(name))
    .map(({ spec }) => spec.scaleTargetRef.name);
  const running = objectsOf(objects, 'Deployment').filter(
    ({ name, spec }) => spec.replicas !== 0 && !heldTargets.includes(name),
  );
  return objectsOf(objects, 'Job').flatMap(({ name, labels }) => {
    const components = STOPPED[labels[COMPONENT] ?? ''] ?? [];
    return running
      .filter((deployment) => components.includes(deployment.labels[COMPONENT] ?? ''))
      .map((deployment) => `Job ${name}: ${deployment.name} may run meanwhile`);
  });
}
