import type { DocumentOptions, ParseOptions, ScalarTag, SchemaOptions, Tags } from "yaml";

const INTEGER = "tag:yaml.org,2002:int";
const TIMESTAMP = "tag:yaml.org,2002:timestamp";

// What YAML 1.2 brought, and Go's own parser of numbers takes (strconv.ParseInt with base 0).
const octalWithLetter: ScalarTag = {
  tag: INTEGER,
  default: true,
  test: /^[-+]?0o[0-7_]+$/i,
  resolve: (text) => {
    const value = Number.parseInt(text.replace(/^[-+]?0o/i, "").replaceAll("_", ""), 8);
    return text.startsWith("-") ? -value : value;
  },
};

/**
 * YAML as kubectl reads it (sigs.k8s.io/yaml on go-yaml v2): version 1.1, with merge keys, `0644` in octal, and `yes` and `on` as
 * booleans, but without its numbers in base 60 and its timestamps, which stay text.
 */
export const KUBECTL_DIALECT: ParseOptions & DocumentOptions & SchemaOptions = {
  version: "1.1",
  merge: true,
  customTags: (tags: Tags) => [octalWithLetter, ...tags.filter((tag) => typeof tag === "string" || isTaken(tag))],
};

function isTaken(tag: Exclude<Tags[number], string>): boolean {
  return tag.tag !== TIMESTAMP && !("format" in tag && tag.format === "TIME");
}
