import { compareWithReal } from '../kit/real-comparison.ts';
import { realGlibc } from '../kit/real-programs.ts';

compareWithReal(await realGlibc(), 'quick');
