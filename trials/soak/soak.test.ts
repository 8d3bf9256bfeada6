import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtPackage } from '../../test/support/cli/built-package.js'
import { soak } from './soak.js'

// A few seconds of what `npm run soak` does for half an hour.

test('every answer is right while the server is written to, read and killed', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'minetree-test-'))
  try {
    const main = join(await builtPackage(), 'dist/cli/main.js')
    const lines: string[] = []
    const report = (line: string) => lines.push(line)
    const figures = await soak({ main, dataDir, seed: 1, milliseconds: 4000, kills: 2, report })
    expect(lines.filter((line) => line.startsWith('wrong'))).toEqual([])
    expect(figures).toMatchObject({ kills: 2, wrongAnswers: 0 })
    expect(figures.writes).toBeGreaterThan(10)
    expect(figures.reads).toBeGreaterThan(10)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})
