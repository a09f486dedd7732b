package maintenance

// The vocabulary has two rules that keep the oracle simple. English nouns stand in one form only, so that stemming, which
// search does and the oracle does not, joins no two words that a query may ask for. And no English word has a hyphen.

// term is a thing in both languages.
type term struct{ en, zh string }

// family is a kind of machine with the ids of those that stand in the plants.
type family struct {
	name term
	// id is completed by a number of digits digits, from 1 to count.
	id            string
	digits, count int
	parts         []term
}

var families = []family{
	{term{"stamping press", "冲压机"}, "PRESS-", 2, 8, []term{
		{"clutch brake", "离合制动器"}, {"slide gib", "滑块导轨"}, {"crankshaft bushing", "曲轴衬套"}, {"die cushion", "模具气垫"},
		{"overload cylinder", "过载油缸"}, {"light curtain", "安全光幕"}, {"flywheel belt", "飞轮皮带"}, {"balance cylinder", "平衡气缸"},
		{"feeder roll", "送料辊"}, {"cam switch", "凸轮开关"},
	}},
	{term{"turning lathe", "数控车床"}, "CNC-", 2, 12, []term{
		{"spindle bearing", "主轴轴承"}, {"tool turret", "刀塔"}, {"ball screw", "滚珠丝杠"}, {"tailstock sleeve", "尾座套筒"},
		{"chuck jaw", "卡盘卡爪"}, {"coolant pump", "切削液泵"}, {"chip auger", "排屑螺杆"}, {"linear scale", "光栅尺"},
		{"servo amplifier", "伺服放大器"}, {"guideway wiper", "导轨刮板"},
	}},
	{term{"moulding machine", "注塑机"}, "注塑机-", 1, 10, []term{
		{"plasticizing barrel", "塑化料筒"}, {"toggle pin", "曲肘销轴"}, {"ejector rod", "顶针杆"}, {"nozzle heater", "喷嘴加热圈"},
		{"clamping platen", "锁模模板"}, {"proportional valve", "比例阀"}, {"hopper dryer", "料斗干燥机"}, {"cavity thermostat", "模温控制器"},
		{"check ring", "止逆环"}, {"hydraulic accumulator", "液压蓄能器"},
	}},
	{term{"welding robot", "焊接机器人"}, "ROBOT-", 2, 10, []term{
		{"wrist reducer", "腕部减速机"}, {"teach pendant", "示教器"}, {"torch cable", "焊枪电缆"}, {"wire spool", "焊丝盘"},
		{"gripper finger", "夹爪手指"}, {"encoder battery", "编码器电池"}, {"axis harness", "轴线束"}, {"collision sensor", "碰撞传感器"},
		{"grease nipple", "黄油嘴"}, {"tool flange", "工具法兰"},
	}},
	{term{"belt conveyor", "输送机"}, "输送线-", 1, 6, []term{
		{"drive pulley", "驱动滚筒"}, {"idler frame", "托辊支架"}, {"chain sprocket", "链轮"}, {"photoelectric eye", "光电开关"},
		{"belt scraper", "皮带清扫器"}, {"tension carriage", "张紧小车"}, {"geared motor", "齿轮电机"}, {"transfer fork", "移载货叉"},
		{"guard rail", "护栏挡边"}, {"barcode reader", "条码读码器"},
	}},
	{term{"screw compressor", "空压机"}, "COMP-", 2, 6, []term{
		{"intake unloader", "进气卸荷器"}, {"oil separator", "油气分离器"}, {"airend rotor", "主机转子"}, {"aftercooler core", "后冷却器芯体"},
		{"drain trap", "排水器"}, {"fan inverter", "风机变频器"}, {"minimum pressure valve", "最小压力阀"}, {"dew sensor", "露点传感器"},
		{"shaft coupling", "联轴器"}, {"suction strainer", "吸气滤网"},
	}},
	{term{"water chiller", "冷水机"}, "冷水机-", 1, 4, []term{
		{"evaporator tube", "蒸发器铜管"}, {"condenser fin", "冷凝器翅片"}, {"expansion valve", "膨胀阀"}, {"refrigerant dryer", "制冷剂干燥器"},
		{"circulation impeller", "循环泵叶轮"}, {"flow paddle", "靶式流量计"}, {"tank float", "水箱浮球"}, {"liquid receiver", "储液罐"},
		{"solenoid coil", "电磁阀线圈"}, {"cooling tower", "冷却塔"},
	}},
	{term{"laser cutter", "激光切割机"}, "LASER-", 2, 4, []term{
		{"cutting head", "切割头"}, {"protective window", "保护镜片"}, {"collimator lens", "准直镜"}, {"gantry rack", "横梁齿条"},
		{"dust extractor", "除尘器"}, {"gas regulator", "气体减压阀"}, {"height follower", "高度跟随器"}, {"shuttle table", "交换工作台"},
		{"beam bellows", "光路护罩"}, {"pump diode", "泵浦二极管"},
	}},
}

var projects = []string{
	"苏州一厂", "苏州二厂", "宁波冲压线", "重庆总装线", "东莞注塑车间", "沈阳机加车间",
	"Plant Leipzig", "Plant Pune", "Plant Puebla", "Line A3", "Line B1", "Line C7",
}

var symptoms = []term{
	{"overheating", "过热"}, {"vibration", "振动过大"}, {"leakage", "渗漏"}, {"squeal", "异响"}, {"abrasion", "严重磨损"},
	{"jam", "卡死"}, {"deviation", "位置偏差超限"}, {"dropout", "信号丢失"}, {"timeout", "通讯超时"}, {"overcurrent", "过电流"},
	{"undervoltage", "电压过低"}, {"depressurization", "压力骤降"}, {"sluggishness", "动作迟缓"}, {"contamination", "油污堵塞"},
	{"crack", "出现裂纹"}, {"corrosion", "锈蚀"}, {"misalignment", "不对中"}, {"backlash", "间隙过大"}, {"overload", "过载"},
	{"deformation", "变形"}, {"discharge", "接地放电"}, {"drift", "零点漂移"}, {"flutter", "频繁抖动"}, {"starvation", "润滑不足"},
}

var causes = []term{
	{"a hardened seal", "密封件老化"}, {"a loose terminal in the cabinet", "电柜端子松动"}, {"metal dust in the housing", "壳体内积有金属粉尘"},
	{"an old lubricant", "润滑脂变质"}, {"a wrong parameter after the last download", "上次下载后参数错误"}, {"a broken shield of the cable", "电缆屏蔽层破损"},
	{"an unbalanced phase of the supply", "供电三相不平衡"}, {"water in the compressed air", "压缩空气含水"}, {"a clogged filter", "滤芯堵塞"},
	{"a bent bracket", "支架弯曲"}, {"a weak spring", "弹簧疲劳"}, {"an uneven foundation", "地基不平"}, {"a missing dowel", "定位销缺失"},
	{"high ambient humidity", "环境湿度过高"}, {"a defective relay", "继电器触点烧蚀"}, {"a scratched seat", "阀座划伤"},
	{"an interrupted fieldbus", "现场总线中断"}, {"a mixed batch of raw material", "原料批次混用"}, {"a too tight fit after overhaul", "大修后配合过紧"},
	{"a forgotten transport lock", "运输锁未拆除"}, {"a swollen hose", "软管鼓包"}, {"a firmware mismatch", "固件版本不匹配"},
	{"a late shift handover", "交接班遗漏点检"}, {"an exhausted absorber", "缓冲器失效"},
}

var measures = []term{
	{"replace the seal and polish the groove", "更换密封件并抛光沟槽"}, {"fasten every terminal with the torque wrench", "用力矩扳手紧固全部端子"},
	{"purge the housing with dry air", "用干燥空气吹扫壳体"}, {"renew the lubricant and note the date", "更换润滑脂并登记日期"},
	{"restore the backup of the parameters", "恢复参数备份"}, {"route the cable away from the inverter", "将电缆远离变频器布线"},
	{"measure all three phases under power", "带电测量三相电压"}, {"empty the water trap every morning", "每天早上排空积水"},
	{"fit a new filter and reset the counter", "更换滤芯并复位计数器"}, {"straighten the bracket and secure it", "校直支架并加固"},
	{"exchange the spring as a pair", "成对更换弹簧"}, {"level the base with shims", "用垫片调平底座"}, {"insert both dowels before mounting", "安装前装入两个定位销"},
	{"seal the cabinet and add a dehumidifier", "密封电柜并加装除湿器"}, {"swap the relay and log the serial number", "更换继电器并记录序列号"},
	{"lap the seat by hand", "手工研磨阀座"}, {"ground the fieldbus at one end only", "现场总线单端接地"}, {"divide the batches in the warehouse", "仓库分批存放"},
	{"ream the bore by two hundredths", "铰孔扩大两丝"}, {"remove the red lock and store it", "拆除红色锁件并保管"},
	{"shorten the hose and clip it", "缩短软管并卡固"}, {"flash the firmware of both controllers", "同时刷新两台控制器固件"},
	{"extend the handover checklist", "完善交接点检表"}, {"order the absorber from the second source", "从备选供应商采购缓冲器"},
}

// parameter is a quantity with its unit; its values go from low in count steps, in hundredths.
type parameter struct {
	name             term
	unit             string
	low, step, count int
}

var parameters = []parameter{
	{term{"working pressure", "工作压力"}, "bar", 350, 25, 60}, {term{"holding pressure", "保压压力"}, "MPa", 420, 10, 90},
	{term{"clamping force", "夹紧力"}, "kN", 1200, 50, 90}, {term{"tightening torque", "拧紧力矩"}, "Nm", 650, 50, 90},
	{term{"spindle speed", "转速"}, "rpm", 80000, 5000, 80}, {term{"axial clearance", "轴向间隙"}, "mm", 2, 1, 60},
	{term{"line frequency", "运行频率"}, "Hz", 3000, 50, 80}, {term{"rated power", "额定功率"}, "kW", 150, 25, 80},
	{term{"filter delay", "滤波延时"}, "ms", 1000, 500, 60}, {term{"supply flow", "供液流量"}, "ml", 5000, 500, 60},
}

// codeFamilies are the forms of error codes; the first number keeps a code's length the usual one.
var codeFamilies = []struct {
	format string
	first  int
}{{"E-%04d", 1017}, {"ALM_%04d", 12}, {"SRVO-%03d", 6}, {"F%05d", 7001}, {"0x8007%04d", 5}}

// text holds the sentences of one knowledge type in one language. In braces stand what a document fills in; a sentence of
// mentions is used once for each further error code.
type text struct {
	titles   []string
	openings []string
	details  []string
	mentions []string
}

// Knowledge types.
const (
	alarm      = "alarm"
	setup      = "setup"
	experience = "experience"
)

var english = map[string]text{
	alarm: {
		titles: []string{"{code} {part} {symptom}", "{code}: {symptom} of the {part}", "{code} {family} {part} {symptom}"},
		openings: []string{
			"Alarm {code} stops the {family} when the control sees {symptom} of the {part}.",
			"The display shows {code} and the {part} reports {symptom}; the {family} stays at rest.",
			"{code} comes up within seconds after the start and means {symptom} of the {part} on {equipment}.",
		},
		details: []string{
			"The most common reason is {cause}.", "In about one case of ten it is {cause}.", "To clear it, {measure}.",
			"If the alarm returns, {measure}.", "The {quantity} must read {value} before the reset.", "Normal is a {quantity} of {value}.",
			"Lock out the main switch and wait until the link capacitors are empty.", "The operator may acknowledge once; after that call maintenance.",
			"The axis keeps its reference as long as the cabinet stays on.", "Photos of the damage belong to the shift report.",
			"A restart without repair damages the {part} for good.", "Spare units lie in rack four of the store at {project}.",
			"Look at the trend of the last eight hours first.", "The signal lamp turns from green to red and the horn sounds.",
		},
		mentions: []string{"It often comes before {other}.", "When {other} is active too, begin with that one.", "Do not mistake it for {other}, which has another origin."},
	},
	setup: {
		titles: []string{"Setup of the {part} on {equipment}", "{family} setup: {quantity} of the {part}", "Commissioning the {part}, {quantity} {value}"},
		openings: []string{
			"This sheet tells how the {part} of the {family} is set after a changeover.",
			"After mounting the {part} on {equipment}, go through these steps in order.",
			"The {part} needs a new setting whenever the product at {project} changes.",
		},
		details: []string{
			"Set the {quantity} to {value} and save the recipe.", "Start with a {quantity} of {value} and raise it slowly.",
			"Run twenty cycles without load and watch the {part}.", "Before that, {measure}.", "A frequent mistake is {cause}.",
			"If the first part shows {symptom}, go one step back.", "Mark the position with a paint pen.", "Two people sign the release sheet.",
			"Keep hands out of the fenced area while the drive is enabled.", "The master sample hangs beside the panel.",
			"Write the values into the log of {project}.", "Teach the three points again and compare them with the drawing.",
			"The quality desk releases the first good piece.", "Use the gauge with the blue tag, not the shop caliper.",
		},
		mentions: []string{"While the guard is open the control shows {other}, which is expected.", "{other} after this step means that the recipe was not saved."},
	},
	experience: {
		titles: []string{"{part} {symptom} on {equipment}", "Lessons from {project}: {part} {symptom}", "Field report: {symptom} of the {part}"},
		openings: []string{
			"In the night shift {equipment} stood still because of {symptom} of the {part}.",
			"The team at {project} fought for three days against {symptom} of the {part}.",
			"A colleague noticed {symptom} of the {part} during the weekly round.",
		},
		details: []string{
			"At first we suspected {cause}.", "In the end it was {cause}.", "What helped: {measure}.", "Our advice is to {measure}.",
			"We found a {quantity} of {value}, far outside the sheet.", "With a {quantity} of {value} it has run well since then.",
			"The supplier confirmed the finding by telephone.", "Downtime was a little under four hours.", "Nobody had touched the {family} for weeks.",
			"The same happened a year ago on the neighbouring line.", "We now check it every second Monday.", "The spare came by courier from another site.",
			"A thermal camera showed the hot spot at once.", "Listening with a long screwdriver told us more than the diagnosis page.",
		},
		mentions: []string{"The log held {other}.", "Shortly before, {other} had been acknowledged twice.", "The panel showed {other} now and then."},
	},
}

var chinese = map[string]text{
	alarm: {
		titles: []string{"{code} {part}{symptom}报警", "{code} {family}{part}{symptom}故障", "报警 {code} {part}{symptom}"},
		openings: []string{
			"控制系统检测到{part}{symptom}时触发 {code} ，{family}立即停机。", "屏幕显示 {code} ，表示{part}{symptom}，设备进入保持状态。",
			"设备 {equipment} 启动几秒后出现 {code} ，原因是{part}{symptom}。",
		},
		details: []string{
			"最常见的原因是{cause}。", "少数情况下是{cause}。", "排除方法：{measure}。", "如果再次报警，则{measure}。",
			"复位前{quantity}应为 {value} 。", "正常{quantity}为 {value} 。", "先断开主电源，等待母线电容放电完毕。", "操作工只允许确认一次，之后必须通知维修人员。",
			"只要电柜不断电，各轴参考点不会丢失。", "损坏部位拍照后附在交班记录里。", "未修复就强行启动会造成{part}永久损坏。", "备件放在{project}备件库四号货架。",
			"先查看最近八小时的趋势曲线。", "信号灯由绿变红，蜂鸣器同时响起。", "处理完成后空运行十个循环，确认没有再次触发。",
		},
		mentions: []string{"之后往往会出现 {other} 。", "如果同时出现 {other} ，应先处理后者。", "不要与 {other} 混淆，两者来源不同。"},
	},
	setup: {
		titles: []string{"{equipment} {part}调试", "{family}{part}{quantity}设定", "{part}换型调整，{quantity} {value}"},
		openings: []string{
			"本指导书说明换型后如何调整{family}的{part}。", "在 {equipment} 上安装{part}之后，按以下步骤操作。", "{project}更换产品时需要重新设定{part}。",
		},
		details: []string{
			"将{quantity}设为 {value} 并保存配方。", "{quantity}从 {value} 开始逐步提高。", "空载运行二十个循环，观察{part}。", "在此之前先{measure}。",
			"常见的错误是{cause}。", "首件若{symptom}，退回上一步重新调整。", "用油漆笔标记位置。", "放行单需要两人签字。", "驱动使能期间双手不得进入防护区域。",
			"标准样件挂在操作面板旁边。", "把数值填入{project}的设定记录表。", "重新示教三个点位并与图纸核对。", "首件合格后由质检台放行。",
			"使用蓝色标签的量规，不要用普通卡尺。", "调整完毕后锁紧螺母，避免运行中松动。",
		},
		mentions: []string{"防护门打开时显示 {other} 属于正常现象。", "这一步之后出现 {other} 说明配方没有保存。"},
	},
	experience: {
		titles: []string{"{equipment} {part}{symptom}处理经验", "{project}经验分享：{part}{symptom}", "现场记录：{part}{symptom}的排查"},
		openings: []string{
			"夜班期间 {equipment} 因{part}{symptom}停机。", "{project}的维修班组为{part}{symptom}忙了三天。", "同事在每周巡检时发现{part}{symptom}。",
		},
		details: []string{
			"起初怀疑是{cause}。", "最后确认是{cause}。", "有效的办法是{measure}。", "建议大家{measure}。", "实测{quantity}为 {value} ，明显超出标准。",
			"把{quantity}调到 {value} 后一直运行良好。", "供应商电话里也认同这个结论。", "停机时间不到四个小时。", "这台{family}几周内没有人动过。",
			"一年前隔壁产线也发生过同样的问题。", "现在每隔一周的星期一检查一次。", "备件从兄弟工厂快递过来。", "热像仪一下子就找到了发热点。",
			"用长螺丝刀听声音比诊断页面更管用。", "班组已把这次经历写进培训教材。",
		},
		mentions: []string{"日志里有 {other} 。", "不久之前 {other} 被确认过两次。", "面板偶尔显示 {other} 。"},
	},
}
