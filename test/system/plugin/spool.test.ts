import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { Spool } from '../../../backend/src/host/spool.js'
import { IS_NIGHTLY } from '../../support/nightly.js'

const ROOT = resolve(import.meta.dirname, '../../..')
const KILLS = IS_NIGHTLY ? 100 : 5
const SIZE = 100_000
/** The BEEF of submission n has n × SIZE bytes, all the same. Odd ones are deleted. */
const PROGRAM = `
import { writeSync } from 'node:fs'
import { Spool } from './spool.js'
const spool = new Spool(process.env.FOLDER)
for (let n = 1; ; n++) {
  spool.see(String(n), Buffer.alloc(n * ${SIZE}, n))
  if (n % 2 === 1) spool.delete(String(n))
  spool.flush()
  writeSync(1, n + '\\n')
}`

test('what topic managers saw is whole after a kill, and nothing of what was deleted is left', async () => {
  const { outputFiles } = await build({
    stdin: { contents: PROGRAM, resolveDir: join(ROOT, 'backend/src/host') },
    ...{ bundle: true, write: false, packages: 'external', platform: 'node', format: 'esm' },
  })
  for (let kill = 0; kill < KILLS; kill++) {
    const folder = mkdtempSync(join(tmpdir(), 'spool-'))
    const env = { ...process.env, FOLDER: folder }
    const child = spawn(process.execPath, ['--input-type=module', '-'], { cwd: ROOT, env })
    const closed = once(child, 'close')
    child.stdin.end(outputFiles[0]?.text)
    const seen: number[] = []
    for await (const line of createInterface(child.stdout))
      if (seen.push(Number(line)) === 6 + (kill % 20)) child.kill('SIGKILL')
    await closed
    expect(seen.length).toBeGreaterThan(5)
    const spool = new Spool(folder)
    onTestFinished(() => spool.close())
    const left = spool.txids()
    expect(left).toEqual(expect.arrayContaining(seen.filter((n) => n % 2 === 0).map(String)))
    for (const n of left.map(Number)) {
      const beef = spool.get(String(n))?.seen ?? new Uint8Array()
      expect(Buffer.alloc(n * SIZE, n).equals(beef)).toBe(true)
      // The process may have been killed before it deleted the next one.
      expect(n % 2 === 0 || n > seen.length).toBe(true)
    }
    expect(readdirSync(join(folder, 'spool')).toSorted()).toEqual(left.filter((n) => n !== '1').toSorted())
  }
})
