import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../../..')

/** Builds the page for mining, as `npm run build` does, into a folder. */
export async function buildMinePage(folder: string): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build:page', '--', `--outdir=${folder}`], {
    cwd: ROOT,
  })
}

/** The page as the sources have it now, for the tests of one file. */
export async function builtMinePage(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-page-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await buildMinePage(folder)
  return pathToFileURL(`${folder}/`)
}
