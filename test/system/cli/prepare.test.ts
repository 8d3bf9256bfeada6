import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../../..')

test('a build is made where the sources have changed, and not otherwise', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-prepare-'))
  try {
    for (const name of ['src', 'backend/src', 'packages', 'dist'])
      await mkdir(join(folder, name), { recursive: true })
    await copyFile(join(ROOT, 'prepare.mjs'), join(folder, 'prepare.mjs'))
    const step = "node -e \"fs.appendFileSync('dist/builds', 'x')\""
    const build = `node prepare.mjs --building && ${step} && node prepare.mjs --built`
    await writeFile(join(folder, 'package.json'), JSON.stringify({ scripts: { build } }))
    const prepare = async (...args: string[]): Promise<unknown> =>
      await promisify(execFile)(process.execPath, ['prepare.mjs', ...args], { cwd: folder })
    const builds = async (): Promise<number> => {
      await prepare()
      return (await readFile(join(folder, 'dist/builds'))).length
    }
    expect([await builds(), await builds()]).toEqual([1, 1])
    await writeFile(join(folder, 'src/new.ts'), 'one')
    expect([await builds(), await builds()]).toEqual([2, 2])
    await writeFile(join(folder, 'src/new.ts'), 'two')
    expect(await builds()).toBe(3)
    await rm(join(folder, 'dist/built-from'))
    expect([await builds(), await builds()]).toEqual([4, 4])
    // A build of other sources that was stopped, and one during which they changed: neither says that `dist` is made of these.
    await writeFile(join(folder, 'src/new.ts'), 'three')
    await prepare('--building')
    await writeFile(join(folder, 'src/new.ts'), 'two')
    expect([await builds(), await builds()]).toEqual([5, 5])
    await prepare('--building')
    await writeFile(join(folder, 'src/new.ts'), 'three')
    await prepare('--built')
    expect([await builds(), await builds()]).toEqual([6, 6])
  } finally {
    await rm(folder, { recursive: true })
  }
})
