import { expect, test } from "vitest";
import { differences, marksOf } from "../../../scripts/documents/marks.ts";
import { missingLine } from "../../support/documents/run-page.ts";

const block = (info: string): string => `\`\`\`${info}\nlegation status\n\`\`\`\n`;

test("counts blocks that a test runs, and those that none can", () => {
  const text = [block("sh run"), block("sh elsewhere: needs a load balancer"), block("text"), block("yaml")].join("\n");
  expect(marksOf("a.md", text)).toEqual({ run: 1, elsewhere: 1, problems: [] });
});

test.each(["sh", "sh runs", "sh elsewhere:", "sh elsewhere: `npm test` has it"])(
  "names the line of a block with the info string `%s`",
  (info) => {
    const { problems } = marksOf("a.md", `# A\n\n${block(info)}`);
    expect(problems).toEqual([expect.stringMatching(/^a\.md:3: commands with/)]);
  },
);

test("names the line of a command that stands beside its output", () => {
  const { problems } = marksOf("a.md", "# A\n\n```\n$ legation status\nNAME\n```\n");
  expect(problems).toEqual([expect.stringMatching(/^a\.md:3: a command beside its output/)]);
});

test("names pages whose commands no test runs, and pages without commands for their test", () => {
  expect(differences(["a.md", "b.md"], ["b.md", "c.md"])).toEqual([
    expect.stringMatching(/^a\.md: no test/),
    expect.stringMatching(/^c\.md: .* no block/),
  ]);
});

test("expects lines in their order, with any spaces, and any text for …", () => {
  const output = "CLUSTER  READY   VERSION\neast     yes     v1.36.3\nwest     yes     v1.36.3\n";
  expect(missingLine("east yes …\nwest   yes v1.36.3\n", output)).toBeUndefined();
  expect(missingLine("west yes …\neast yes …", output)).toBe("east yes …");
  expect(missingLine("east yes", output)).toBe("east yes");
  expect(missingLine("east yes v1.36.*", output)).toBe("east yes v1.36.*");
});
