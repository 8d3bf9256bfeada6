/** A group of tests with a shared server. Where the machine lacks its programs they are skipped, and their name says so. */
export function describeWithService(
  { name, missing }: { name: string; missing: string[] },
  tests: () => void,
): void {
  if (missing.length > 0) describe.skip(`${name} (there is no ${missing.join(', no ')} here)`, tests)
  else describe(name, tests)
}
