import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CommandOutput } from '../../../src/cli/output.js'

/** What a command writes when it is called in this process. */
export function keptOutput({ json = false } = {}): { output: CommandOutput; written(): Promise<string> } {
  const stdout = new PassThrough()
  const stderr = new PassThrough().resume()
  return {
    output: new CommandOutput({ stdout, stderr, json, env: {} }),
    async written() {
      stdout.end()
      return await text(stdout)
    },
  }
}

/** Files by their paths; those without content are folders. */
export type Files = Record<string, string | Uint8Array | undefined>

/** Writes files into a folder, and gives the folder. */
export async function writeFiles(folder: string, files: Files): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    const whole = join(folder, path)
    await mkdir(content === undefined ? whole : dirname(whole), { recursive: true })
    if (content !== undefined) await writeFile(whole, content)
  }
  return folder
}

/** A test where the machine has all of these programs; elsewhere it is skipped, and says by its name what is missing. */
export function testWith(...programs: string[]): (name: string, body: () => unknown) => void {
  const missing = programs.filter((program) => spawnSync(program, ['--help']).error !== undefined)
  return (name, body) =>
    missing.length === 0 ? test(name, body) : test.skip(`${name} (there is no ${missing.join()} here)`, body)
}
