import { copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Tour } from "../demo/tour.ts";
import { Recording } from "./recording.ts";
import { LOST_MEMBER, MANIFESTS } from "./scene.ts";

const LEGATION = fileURLToPath(new URL("../../bin/legation", import.meta.url));

/** The session for those who do not see it. */
export const SESSION_TITLE: string =
  "A terminal. One annotation on a Deployment, and its pods run in other clusters. legation plan says " +
  "where a Job would go, and why not elsewhere; legation status pod tells the way of a pod. Then east is lost: Kubernetes " +
  "evicts its pods, and new ones run in the other members.";

/** Prepares a terminal whose context is the namespace shop. */
export async function openSession({ clusters, shell, signal }: Tour): Promise<Recording> {
  const { directory, kubectl } = clusters.info;
  const bin = join(directory, "bin");
  mkdirSync(bin);
  symlinkSync(kubectl, join(bin, "kubectl"));
  symlinkSync(LEGATION, join(bin, "legation"));
  const kubeconfig = join(directory, "session.kubeconfig");
  copyFileSync(clusters.get("host").kubeconfig, kubeconfig);
  const setContext = ["config", "set-context", "--current", "--namespace=shop"];
  await shell.run("kubectl", "--kubeconfig", kubeconfig, ...setContext);
  return new Recording({ cwd: MANIFESTS, bin, kubeconfig, signal, note: (text) => shell.note(text) });
}

const WEB_PODS = "kubectl get pods -l app=web -o wide --no-headers";

/** Delegates a Deployment. `delegated` waits until its pods run in members. */
export async function recordDelegation(recording: Recording, delegated: () => Promise<void>): Promise<void> {
  recording.say("One annotation, and the pods of a Deployment run in other clusters");
  await recording.run("kubectl annotate deployment web legation.dev/delegate=true", { seconds: 0.3 });
  await delegated();
  await recording.run(WEB_PODS, { seconds: 1.9 });
}

/** Asks where a Job would go, and what happened to a pod. */
export async function recordQuestions(recording: Recording, pod: string): Promise<void> {
  recording.say("Where would this Job go, and why not elsewhere?");
  await recording.run("legation plan -f train-model.yaml", { seconds: 1.7 });
  recording.clear();
  recording.say("What happened to this pod?");
  await recording.run(`legation status pod ${pod}`, { seconds: 1.8 });
}

/** Shows that a member is lost, and what follows. `replaced` waits until other pods run in place of those there. */
export async function recordLoss(recording: Recording, replaced: () => Promise<void>): Promise<void> {
  recording.clear();
  recording.say(`${LOST_MEMBER} stops answering`);
  await recording.run("legation status", { seconds: 1.6 });
  recording.say("Kubernetes evicts its pods, and others run in their place");
  await replaced();
  await recording.run(WEB_PODS, { seconds: 2.1 });
}
