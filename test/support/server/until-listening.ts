import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/**
 * The URL of a server that runs in a process of its own, from the line in which it says that it is listening.
 *
 * @throws Error with the last lines of its output if it ends before that.
 */
export async function untilListening(child: ChildProcess): Promise<string> {
  const lines: string[] = []
  const listening = new Promise<string>((found) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        if (lines.length > 20) lines.shift()
        const [, url] = stream === child.stdout ? (/listening on (http:[^"\s]+)/.exec(line) ?? []) : []
        if (url !== undefined) found(url)
      })
    }
  })
  const failed = once(child, 'close').then(() => {
    throw new Error(`it ended before it listened: ${lines.join('\n')}`)
  })
  return await Promise.race([listening, failed])
}
