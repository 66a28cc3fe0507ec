import { bool, fields, int32, type JsonCheck, list, map, number, orNull, quantity, text } from "./shape.ts";

const optional = (of: Readonly<Record<string, JsonCheck>>): JsonCheck => fields({}, of);
const anything: JsonCheck = () => true;
const object = optional({});

export const metadataShape: JsonCheck = fields(
  { name: text, uid: text, resourceVersion: text },
  {
    namespace: text,
    generateName: text,
    labels: map(text),
    annotations: map(text),
    finalizers: list(text),
    ownerReferences: list(fields({ apiVersion: text, kind: text, name: text, uid: text }, { controller: bool })),
    creationTimestamp: orNull(text),
    deletionTimestamp: text,
    deletionGracePeriodSeconds: number,
    generation: number,
  },
);

const reference = optional({ name: text, optional: bool });
const secretReference = optional({ secretRef: reference });
const amounts = map(quantity);
const resources = optional({ requests: amounts, limits: amounts, claims: list(object) });
const source = optional({ configMap: reference, secret: reference, serviceAccountToken: object });
const volume = fields(
  { name: text },
  {
    configMap: reference,
    secret: optional({ secretName: text, optional: bool }),
    projected: optional({ sources: orNull(list(source)) }),
    persistentVolumeClaim: optional({ claimName: text }),
    ephemeral: object,
    azureFile: optional({ secretName: text }),
    csi: optional({ nodePublishSecretRef: reference }),
    ...Object.fromEntries(
      ["cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"].map((kind) => [kind, secretReference]),
    ),
  },
);
const variable = fields(
  { name: text },
  { value: text, valueFrom: optional({ configMapKeyRef: reference, secretKeyRef: reference }) },
);
const container = fields(
  { name: text },
  {
    image: text,
    env: list(variable),
    envFrom: list(optional({ configMapRef: reference, secretRef: reference })),
    resources,
    restartPolicy: text,
    volumeMounts: list(object),
  },
);
const state = optional({ waiting: object, running: object, terminated: object });
const containerStatus = fields(
  { name: text },
  {
    ready: bool,
    started: bool,
    restartCount: int32,
    state,
    lastState: state,
    containerID: text,
    image: text,
    imageID: text,
    allocatedResources: amounts,
    allocatedResourcesStatus: list(fields({ name: text })),
    volumeMounts: list(object),
    resources,
  },
);
const condition = fields(
  { type: text, status: text },
  { reason: text, message: text, lastTransitionTime: orNull(text), observedGeneration: number },
);
const toleration = optional({ key: text, operator: text, value: text, effect: text, tolerationSeconds: number });

export const podShape: JsonCheck = optional({
  spec: fields(
    { containers: list(container) },
    {
      nodeName: text,
      schedulerName: text,
      serviceAccountName: text,
      restartPolicy: text,
      initContainers: list(container),
      ephemeralContainers: list(container),
      volumes: list(volume),
      tolerations: list(toleration),
      imagePullSecrets: list(reference),
      nodeSelector: map(text),
      overhead: amounts,
      resources,
      schedulingGates: list(fields({ name: text })),
      readinessGates: list(fields({ conditionType: text })),
      activeDeadlineSeconds: int32,
      terminationGracePeriodSeconds: number,
    },
  ),
  status: optional({
    phase: text,
    reason: text,
    message: text,
    observedGeneration: number,
    conditions: list(condition),
    containerStatuses: list(containerStatus),
    initContainerStatuses: list(containerStatus),
    ephemeralContainerStatuses: list(containerStatus),
    extendedResourceClaimStatus: fields({
      requestMappings: list(fields({ containerName: text, resourceName: text })),
    }),
    podIP: text,
    podIPs: list(object),
    hostIP: text,
    hostIPs: list(object),
  }),
});

export const nodeShape: JsonCheck = optional({
  spec: optional({
    unschedulable: bool,
    taints: list(fields({ key: text, effect: text }, { value: text })),
  }),
  status: optional({
    capacity: amounts,
    allocatable: amounts,
    conditions: list(condition),
    declaredFeatures: list(text),
    addresses: list(object),
    nodeInfo: object,
    images: anything,
  }),
});

export const eventShape: JsonCheck = fields(
  { involvedObject: optional({ kind: text, namespace: text, name: text, uid: text, fieldPath: text }) },
  {
    type: text,
    reason: text,
    message: text,
    count: int32,
    series: orNull(optional({ count: int32, lastObservedTime: orNull(text) })),
    related: orNull(object),
    source: optional({ component: text, host: text }),
    reportingComponent: text,
    firstTimestamp: orNull(text),
    lastTimestamp: orNull(text),
    eventTime: orNull(text),
  },
);

export const serviceShape: JsonCheck = optional({
  spec: optional({ type: text, clusterIP: text, selector: map(text), ports: list(object), externalName: text }),
});

export const endpointSliceShape: JsonCheck = optional({
  addressType: text,
  endpoints: orNull(list(optional({ addresses: orNull(list(text)), conditions: object, hostname: text }))),
  ports: orNull(list(object)),
});

const labelSelector = orNull(optional({ matchLabels: orNull(map(text)) }));
const policyPeer = optional({ podSelector: labelSelector, namespaceSelector: orNull(object), ipBlock: orNull(object) });
const policyRules = (peers: string): JsonCheck => orNull(list(optional({ [peers]: orNull(list(policyPeer)) })));

export const networkPolicyShape: JsonCheck = optional({
  spec: optional({ podSelector: labelSelector, ingress: policyRules("from"), egress: policyRules("to") }),
});

export const serviceExportShape: JsonCheck = optional({
  spec: orNull(optional({ exportedLabels: map(text), exportedAnnotations: map(text) })),
  status: orNull(optional({ conditions: orNull(list(condition)) })),
});

export const serviceImportShape: JsonCheck = optional({
  spec: optional({ type: text, ports: list(object), ips: list(text), ipFamilies: list(text) }),
  status: orNull(optional({ clusters: orNull(list(fields({ cluster: text }))), conditions: orNull(list(condition)) })),
});

export const clusterProfileShape: JsonCheck = optional({
  spec: optional({ displayName: text, clusterManager: optional({ name: text }) }),
  status: orNull(
    optional({
      version: optional({ kubernetes: text }),
      properties: orNull(list(fields({ name: text, value: text }))),
      accessProviders: orNull(list(fields({ name: text }, { cluster: object }))),
      conditions: orNull(list(condition)),
    }),
  ),
});

export const claimShape: JsonCheck = optional({
  spec: optional({ resources, accessModes: list(text), storageClassName: text, volumeName: text }),
  status: optional({ phase: text, capacity: amounts, conditions: list(condition) }),
});

export const dataShape: JsonCheck = optional({ data: map(orNull(text)), binaryData: map(orNull(text)), type: text });

const jobCondition = fields(
  { type: text, status: text },
  { reason: text, message: text, lastProbeTime: orNull(text), lastTransitionTime: orNull(text) },
);
const jobCounters = { active: int32, ready: int32, terminating: int32, succeeded: int32, failed: int32 };
export const jobShape: JsonCheck = optional({
  spec: optional({
    parallelism: int32,
    completions: int32,
    suspend: bool,
    manualSelector: bool,
    template: optional({ metadata: object, spec: object }),
  }),
  status: optional({ ...jobCounters, startTime: text, completionTime: text, conditions: list(jobCondition) }),
});
export const cronJobShape: JsonCheck = optional({
  spec: optional({
    jobTemplate: optional({ metadata: optional({ labels: map(text) }), spec: optional({ managedBy: text }) }),
  }),
});
