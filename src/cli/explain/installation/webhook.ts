import { randomBytes } from "node:crypto";
import { CONFIGURATIONS, type WebhookEntry } from "../../../../webhook/ca-bundle.ts";
import { WEBHOOK_CERTIFICATE_SECRET } from "../../../../webhook/certificate.ts";
import { DELEGATE_ANNOTATION, GROUP, GROUP_BY_ANNOTATION, PROXY_LABEL } from "../../../api/keys.ts";
import type { Namespace, Pod, Stored } from "../../../api/kubernetes.ts";
import { certificatesOf } from "../../../certificates/bundle.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError, mayBeStarting } from "../../../kube/errors.ts";
import { denyingPolicy, isDeniedByWebhook, isOfWebhook, webhookOf } from "../../../kube/messages.ts";
import { namespaces, pods } from "../../../kube/resources.ts";
import { authoritiesFinding, judgeServed } from "./certificates.ts";
import { problemOf } from "./check.ts";
import { type Finding, fail, ok, skip, warn } from "./finding.ts";

export interface WebhookContext {
  /** The API server's time, epoch ms. */
  readonly now: number;
  /** Address of a webhook outside the cluster. */
  readonly url: string | undefined;
  /** Command that installs what is missing. */
  readonly repair: string;
  /** A namespace that is opted in. */
  readonly namespace: Stored<Namespace> | undefined;
  readonly signal: AbortSignal;
}

/** Returns the step that starts the webhook again, which also writes its caBundle. */
function restart(url: string | undefined): string {
  return url === undefined
    ? "kubectl -n legation-system rollout restart deployment legation-webhook"
    : `start \`legation webhook\` again where ${url} leads, and read its log`;
}

/** Checks the webhook's configurations, the authority that they trust, and its certificate. Rejects with KubeError. */
export async function configurationFindings(
  host: ClusterClient,
  { now, url, repair, signal }: WebhookContext,
): Promise<readonly Finding[]> {
  const { namespace, name: ownSecret } = WEBHOOK_CERTIFICATE_SECRET;
  const deployment = url === undefined ? "legation-webhook" : undefined;
  const remedy = restart(url);
  const server = { namespace, deployment, ownSecret };
  const { finding, authority } = await judgeServed(host, "webhook's certificate", server, { now, remedy, signal });
  const found: Finding[] = [];
  for (const { resource, name: configuration } of CONFIGURATIONS) {
    const stored = await host.find(resource, { name: configuration }, { signal });
    const subject = `${resource.kind} ${configuration}`;
    if (stored === undefined) found.push(fail(`${subject} is missing`, repair));
    else found.push(...trustFindings(subject, stored.webhooks ?? [], { authority, now, remedy, repair }));
  }
  return [...found, finding];
}

/** Judges the caBundle of each entry. `authority`: PEM of the webhook's own, if it has one. */
export function trustFindings(
  subject: string,
  entries: readonly WebhookEntry[],
  {
    authority,
    now,
    remedy,
    repair,
  }: { readonly authority: string | undefined; readonly now: number; readonly remedy: string; readonly repair: string },
): Finding[] {
  const bundleOf = ({ clientConfig }: WebhookEntry): string =>
    Buffer.from(clientConfig.caBundle ?? "", "base64").toString("utf8");
  const names = (of: readonly WebhookEntry[]): string => of.map(({ name }) => name).join(", ");
  const lacking = entries.filter((entry) => certificatesOf(bundleOf(entry)).length === 0);
  if (lacking.length > 0) return [fail(`${subject}: no caBundle in ${names(lacking)}, so no call is trusted`, remedy)];
  const own = certificatesOf(authority ?? "");
  const trusts = (entry: WebhookEntry): boolean => {
    const trusted = certificatesOf(bundleOf(entry));
    return own.every((certificate) => trusted.includes(certificate));
  };
  const strange = entries.filter((entry) => !trusts(entry));
  if (strange.length > 0) {
    return [fail(`${subject}: the caBundle of ${names(strange)} does not have the webhook's own authority`, remedy)];
  }
  const [first] = entries;
  return first === undefined
    ? [fail(`${subject} has no webhooks`, repair)]
    : [authoritiesFinding(`${subject}: caBundle`, bundleOf(first), { now, remedy })];
}

/**
 * Has the API server call the webhook by the dry run of a Namespace with an annotation that the webhook refuses. Nothing is stored.
 * Rejects with KubeError.
 */
export async function reachFindings(
  host: ClusterClient,
  { url, repair, signal }: WebhookContext,
): Promise<readonly Finding[]> {
  const subject = "the API server reaches the webhook";
  const metadata = { name: madeUpName(), annotations: { [GROUP_BY_ANNOTATION]: "legation-doctor" } };
  try {
    await host.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata }, { dryRun: true, signal });
  } catch (error) {
    if (!isKubeError(error) || (error.code === "Forbidden" && mayBeStarting(error))) throw error;
    const isOwn = isOfLegation(error.detail);
    if (isOwn && isDeniedByWebhook(error.detail)) return [ok(subject)];
    if (isOwn) return [fail(`the API server does not reach the webhook: ${problemOf(error)}`, restart(url))];
    return [skip(`${subject}: not known, since something else refused the dry run: ${problemOf(error)}`)];
  }
  return [fail("the API server does not call the webhook for namespaces", repair)];
}

/** Checks that admission makes a proxy of a pod, by a dry run in an opted-in namespace. Rejects with KubeError. */
export async function podFindings(
  host: ClusterClient,
  { url, namespace, signal }: WebhookContext,
): Promise<readonly Finding[]> {
  if (namespace === undefined) {
    return [
      skip(
        "admission of a pod: no namespace is opted in",
        "kubectl label namespace NAME legation.dev/delegation=annotated",
      ),
    ];
  }
  const { name } = namespace.metadata;
  const subject = `admission of a pod in namespace ${name}`;
  try {
    const { metadata } = await host.create(pods, probePod(name), { dryRun: true, signal });
    return metadata.labels?.[PROXY_LABEL] === undefined
      ? [fail(`${subject}: the webhook was not called, and the host would run the pod`, restart(url))]
      : [ok(`${subject} delegates it`)];
  } catch (error) {
    if (!isKubeError(error) || (error.code === "Forbidden" && mayBeStarting(error))) throw error;
    const policy = denyingPolicy(error.detail);
    if (isOfLegation(error.detail) || policy?.startsWith("legation-") === true) {
      return [fail(`${subject} fails: ${problemOf(error)}`, restart(url))];
    }
    const remedy = `kubectl -n ${name} describe quota,limitrange; see the message`;
    return [warn(`${subject}: something other than Legation refuses pods there: ${problemOf(error)}`, remedy)];
  }
}

/** Reports whether a webhook of Legation's denied the request, or did not answer. */
function isOfLegation(message: string): boolean {
  return isOfWebhook(message) && webhookOf(message)?.endsWith(`.${GROUP}`) === true;
}

/** A pod that Pod Security and quotas admit, and that is never stored. */
function probePod(namespace: string): Pod {
  const amounts = { cpu: "1m", memory: "1Mi" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: madeUpName(), namespace, annotations: { [DELEGATE_ANNOTATION]: "true" } },
    spec: {
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          name: "main",
          image: "registry.k8s.io/pause:3.10",
          resources: { requests: amounts, limits: amounts },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        },
      ],
    },
  };
}

function madeUpName(): string {
  return `legation-doctor-${randomBytes(5).toString("hex")}`;
}
