import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for the data of a bench's process. It is removed when the process ends, which ends with the bench. */
export function processFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'minetree-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  process.once('SIGTERM', () => process.exit())
  process.once('disconnect', () => process.exit())
  return folder
}

/** Answers the message `cpu` with the processor time that this process has used. */
export function answerCpuTime(): void {
  process.on('message', (message) => {
    if (message === 'cpu') process.send?.(process.cpuUsage())
  })
}
