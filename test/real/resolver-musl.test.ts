import { compareWithReal } from '../kit/real-comparison.ts';
import { realMusl } from '../kit/real-programs.ts';

compareWithReal(await realMusl(), 'quick');
