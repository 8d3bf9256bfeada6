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
