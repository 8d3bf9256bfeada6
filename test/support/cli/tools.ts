import { spawnSync } from 'node:child_process'

/** A test where the machine has all of these programs; elsewhere it is skipped, and says by its name what is missing. */
export function testWith(...programs: string[]): (...[name, body, timeout]: Parameters<typeof test>) => void {
  const missing = programs.filter((program) => spawnSync(program, ['--help']).error !== undefined)
  return (name, ...rest) =>
    missing.length === 0
      ? test(name, ...rest)
      : test.skip(`${String(name)} (there is no ${missing.join()} here)`, ...rest)
}
