import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Attack, Scene } from '../attack.js'
import { bodyDeeds } from '../body-deeds.js'
import { answer } from '../hostile-server.js'
import { doing, type IndexAnswers, indexFront } from '../index-front.js'
import type { Stage } from '../stage.js'

async function publishScene(stage: Stage, answers: IndexAnswers): Promise<Scene> {
  const { url: behind, env } = await stage.tree()
  const front = await indexFront(stage, { behind, answers })
  const file = join(await stage.folder(), 'page.html')
  await writeFile(file, '<p>a page</p>')
  return { args: ['publish', file, '--url', front.url], env }
}

/** What a server can do to a publisher. */
export function publishAttacks(): Attack[] {
  const attack = (deed: string, answers: (stage: Stage) => IndexAnswers): Attack => ({
    ...{ target: 'publish', server: 'index', deed },
    set: async (stage) => await publishScene(stage, answers(stage)),
  })
  return [
    ...(['/deployment.json', '/submit'] as const).flatMap((route) =>
      bodyDeeds(route === '/submit' ? 'some' : 'all').map(({ name, deed, atNight }) => ({
        ...attack(`${name} at ${route}`, (stage) => ({ [route]: doing(deed, stage) })),
        atNight,
      })),
    ),
    attack('that it took none of it', () => ({
      '/submit': (_, response) =>
        answer(response, { tm_ordinals: { outputsToAdmit: [], coinsToRetain: [] } }),
    })),
  ]
}

export const HONEST_PUBLISHING: Attack = {
  ...{ target: 'publish', server: 'honest', deed: 'a page' },
  set: async (stage) => await publishScene(stage, {}),
}
