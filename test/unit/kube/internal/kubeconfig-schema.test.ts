import { expect, test } from "vitest";
import { parse } from "yaml";
import { kubeConfigSchema } from "../../../../src/kube/internal/kubeconfig-schema.ts";

function read(text: string) {
  return kubeConfigSchema.parse(parse(text));
}

test("reads what kubectl writes for fields that are not set", () => {
  const unset =
    "apiVersion: v1\nkind: Config\npreferences: {}\nclusters: null\ncontexts: null\nusers: null\ncurrent-context: ''";
  expect(read(unset)).toEqual({ clusters: [], contexts: [], users: [] });
  const cluster = "{server: 'https://h', certificate-authority: '', insecure-skip-tls-verify: null, extensions: null}";
  expect(read(`clusters: [{name: a, cluster: ${cluster}}]`).clusters).toEqual([
    { name: "a", cluster: { server: "https://h", "insecure-skip-tls-verify": false } },
  ]);
  expect(read("users: [{name: a, user: {token: '', exec: null, as-groups: null}}, {name: b}]").users).toEqual([
    { name: "a", user: {} },
    { name: "b", user: {} },
  ]);
  expect(read("contexts: [{name: a}]").contexts).toEqual([{ name: "a", context: { cluster: "" } }]);
});

test("reads the plugin of a managed cluster, whose arguments and variables may be null", () => {
  const exec = { apiVersion: "client.authentication.k8s.io/v1beta1", command: "aws", args: null, env: null };
  const written = { ...exec, interactiveMode: "IfAvailable", provideClusterInfo: false };
  const text = JSON.stringify({ users: [{ name: "a", user: { exec: written } }] });
  expect(read(text).users).toEqual([{ name: "a", user: { exec: { ...exec, provideClusterInfo: false } } }]);
});

test("takes an extension without content, which some tools leave behind", () => {
  const [cluster] = read("clusters: [{name: a, cluster: {server: 'https://h', extensions: [{name: x}]}}]").clusters;
  expect(cluster).toMatchObject({ name: "a", cluster: { extensions: [{ name: "x" }] } });
  expect(cluster).not.toHaveProperty("problem");
});

test.each([
  ["cluster: null", /^clusters\[0\]\.cluster\.server: write the API server's URL/],
  ["cluster: {server: '10.0.0.1:6443'}", /^clusters\[0\]\.cluster\.server: write a URL that starts with https:/],
  ["cluster: {server: 'https://h', insecure-skip-tls-verify: 'yes'}", /\.insecure-skip-tls-verify: .*boolean/],
])("has a cluster of %s unusable alone, with its field", (wrong, problem) => {
  const { clusters } = read(`clusters: [{name: bad, ${wrong}}, {name: good, cluster: {server: 'https://h'}}]`);
  expect(clusters).toMatchObject([{ name: "bad", problem: expect.stringMatching(problem) }, { name: "good" }]);
  expect(clusters[0]).not.toHaveProperty("cluster");
  expect(clusters[1]).not.toHaveProperty("problem");
});

test("has a user unusable alone whose plugin speaks another version, or whose token is a number", () => {
  const exec = "{apiVersion: client.authentication.k8s.io/v1alpha1, command: x}";
  const { users } = read(`users: [{name: a, user: {exec: ${exec}}}, {name: b, user: {token: 12}}, {name: c}]`);
  expect(users).toMatchObject([
    { name: "a", problem: expect.stringMatching(/^users\[0\]\.user\.exec\.apiVersion: write "client\.authentication/) },
    { name: "b", problem: expect.stringMatching(/^users\[1\]\.user\.token: /) },
    { name: "c", user: {} },
  ]);
});

test.each(["[]", "text", "clusters: {a: {}}", "clusters: [{cluster: {}}]"])("refuses %s", (text) => {
  expect(kubeConfigSchema.safeParse(parse(text)).success).toBe(false);
});
